// SPDX-License-Identifier: Apache-2.0
#include <cstring>
#include <filesystem>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "base/process/file.h"
#include "learner/network/policy_snapshot.h"
#include "policy/safetensors.h"
#include "tests/fuzz/samples.h"
#include "tests/fuzz/seeds.h"
#include "tests/fuzz/targets.h"

namespace skein::fuzz {
namespace {

// A file with that header, whose length is stated as `length` (0 = as it is).
std::string Safetensors(const std::string& header, const std::string& data, uint64_t length = 0) {
  if (length == 0) length = header.size();
  std::string file(sizeof(length), '\0');
  std::memcpy(file.data(), &length, sizeof(length));
  return file + header + data;
}

std::string Entry(const std::string& dtype, const std::string& shape, const std::string& offsets) {
  return absl::StrCat("{\"dtype\":\"", dtype, "\",\"shape\":", shape, ",\"data_offsets\":", offsets, "}");
}

void AddSafetensors(std::vector<Seed>* seeds) {
  const auto add = [seeds](const std::string& name, const std::string& bytes) {
    seeds->push_back({"safetensors", name, bytes});
  };
  const std::vector<v1::Tensor> tensors = {
      MakeTensor<float>("weight", v1::DATA_TYPE_FLOAT32, {2, 3}, {0, 1, 2, 3, 4, 5}),
      MakeTensor<int64_t>("count", v1::DATA_TYPE_INT64, {2}, {0, 1}),
      MakeTensor<double>("scalar", v1::DATA_TYPE_FLOAT64, {}, {1}),
      MakeTensor<uint8_t>("none", v1::DATA_TYPE_UINT8, {0, 3}, {})};
  const std::string good = EncodeSafetensors(tensors, {{"format", "pt"}});
  add("good_tensors", good);
  add("good_empty", EncodeSafetensors({}));
  add("bad_cut_off", good.substr(0, good.size() - 1));
  add("bad_header_length", Safetensors("{}", "", uint64_t{1} << 63));
  add("bad_json", Safetensors("{\"a\":", ""));
  add("bad_deep_json", Safetensors(absl::StrCat("{\"a\":", std::string(1500, '['), "}"), ""));
  add("bad_shape_huge",
      Safetensors(absl::StrCat("{\"a\":", Entry("F32", "[4294967296,4294967296]", "[0,4]"), "}"), "1234"));
  add("bad_shape_negative", Safetensors(absl::StrCat("{\"a\":", Entry("F32", "[-1]", "[0,4]"), "}"), "1234"));
  add("bad_overlap",
      Safetensors(absl::StrCat("{\"a\":", Entry("F32", "[1]", "[0,4]"), ",\"b\":", Entry("F32", "[1]", "[2,6]"), "}"),
                  "123456"));
  add("bad_gap", Safetensors(absl::StrCat("{\"a\":", Entry("U8", "[1]", "[1,2]"), "}"), "12"));
  add("bad_dtype", Safetensors(absl::StrCat("{\"a\":", Entry("F8", "[1]", "[0,1]"), "}"), "1"));
  add("bad_metadata", Safetensors("{\"__metadata__\":{\"a\":1}}", ""));
}

void AddPolicies(std::vector<Seed>* seeds) {
  const auto add = [seeds](const std::string& name, bool right_digest, const v1::PolicySnapshot& snapshot) {
    seeds->push_back({"policy", name, absl::StrCat(right_digest ? "\x01" : "\x02", snapshot.SerializeAsString())});
  };
  ActorCriticOptions options;
  static_cast<PolicySpec&>(options) = SamplePolicy();
  const ActorCritic network(options, 1);
  const ObsScale scale = ObsScale::Identity(2);
  const v1::PolicySnapshot good = MakeSnapshot(3, network, scale);
  add("good_fp32", false, good);
  v1::TransportConfig transport;
  transport.set_policy_precision(v1::PRECISION_BF16);
  add("good_bf16", false, MakeSnapshot(3, network, scale, transport));
  v1::PolicySnapshot bad = good;
  bad.set_digest(good.digest() ^ 1);
  add("bad_digest", false, bad);
  bad = good;
  bad.mutable_tensors()->RemoveLast();
  add("bad_missing", true, bad);
  bad = good;
  *bad.add_tensors() = good.tensors(0);
  add("bad_superfluous", true, bad);
  bad = good;
  bad.mutable_tensors(0)->set_shape(0, int64_t{1} << 62);
  add("bad_shape", true, bad);
  bad = good;
  bad.mutable_tensors(0)->mutable_data()->replace(0, 4, "\xff\xff\xff\xff");
  add("bad_nan", true, bad);
  bad = good;
  bad.mutable_tensors(0)->set_compression(v1::COMPRESSION_ZSTD);
  add("bad_frame", true, bad);
  bad = good;
  bad.mutable_tensors(0)->set_dtype(v1::DATA_TYPE_INT64);
  add("bad_dtype", true, bad);
}

void AddManifests(std::vector<Seed>* seeds) {
  const auto add = [seeds](const std::string& name, const std::string& text) {
    seeds->push_back({"manifest", name, text});
  };
  const std::filesystem::path folder = std::filesystem::temp_directory_path() / "skein-fuzz-seeds";
  const auto saved = SaveCheckpoint(folder, SampleCheckpoint(), 1);
  Check(saved.ok(), "a checkpoint can be written");
  const std::string good = ReadFile(*saved + "/manifest.json").value();
  std::filesystem::remove_all(folder);
  add("good_manifest", good);
  add("bad_cut_off", good.substr(0, good.size() / 2));
  add("bad_empty", "");
  add("bad_null", "null");
  add("bad_files", absl::StrReplaceAll(good, {{"\"files\"", "\"filez\""}}));
  add("bad_format", absl::StrReplaceAll(good, {{"\"format\": 1", "\"format\": 1e99"}}));
  add("bad_bytes", absl::StrReplaceAll(good, {{"\"bytes\": ", "\"bytes\": -"}}));
  add("bad_checksum", absl::StrReplaceAll(good, {{"\"xxh3_64\": \"", "\"xxh3_64\": \"0"}}));
  add("bad_type", absl::StrReplaceAll(good, {{"\"env_steps\": 4096", "\"env_steps\": \"4096\""}}));
  add("bad_counters", absl::StrReplaceAll(good, {{"\"counters\": [", "\"counters\": [3, "}}));
  add("bad_deep", std::string(1500, '['));
}

}  // namespace

std::vector<Seed> FileSeeds() {
  std::vector<Seed> seeds;
  AddPolicies(&seeds);
  AddSafetensors(&seeds);
  AddManifests(&seeds);
  return seeds;
}

}  // namespace skein::fuzz
