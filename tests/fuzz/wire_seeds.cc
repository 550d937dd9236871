// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <limits>

#include "absl/strings/str_cat.h"
#include "base/number/tensor_packing.h"
#include "tests/fuzz/seeds.h"
#include "tests/fuzz/shapes.h"

namespace skein::fuzz {
namespace {

const std::vector<SampleEnd> kEnds = {{0, 1, true}, {1, 0, false}};

// A fragment of that run, named and timed as an actor does it.
SampleFragment FragmentOf(size_t run) {
  SampleFragment fragment = MakeSampleFragment(Shapes()[run], 1, run == 4 ? std::vector<SampleEnd>() : kEnds);
  fragment.header.set_actor_id("actor-1");
  fragment.header.set_generation(1);
  fragment.header.mutable_stage_seconds()->set_env_step(0.5);
  return fragment;
}

class TrajectorySeeds {
 public:
  void Add(const std::string& name, size_t run, int piece_bytes, const std::string& bytes) {
    seeds_.push_back({"trajectory", name, absl::StrCat(Head(run), Head(piece_bytes), bytes)});
  }
  void Add(const std::string& name, size_t run, const SampleFragment& fragment) { Add(name, run, 0, fragment.Bytes()); }
  // Run 0's fragment after `change(its field of that name)`.
  template <typename Change>
  void AddChanged(const std::string& name, const std::string& field, Change change) {
    SampleFragment fragment = FragmentOf(0);
    change(fragment.Find(field));
    Add(name, 0, fragment);
  }
  std::vector<Seed> Take() { return std::move(seeds_); }

 private:
  static std::string Head(size_t value) { return std::string(1, static_cast<char>(value)); }
  std::vector<Seed> seeds_;
};

std::vector<Seed> Trajectories() {
  TrajectorySeeds seeds;
  for (size_t run = 0; run < 3; ++run) seeds.Add(absl::StrCat("good_run_", run), run, FragmentOf(run));
  SampleFragment narrow = FragmentOf(3);
  Narrow(narrow.Find("obs"));
  Narrow(narrow.Find("final_obs"));
  seeds.Add("good_bfloat16", 3, narrow);
  SampleFragment packed = FragmentOf(4);
  Compress(packed.Find("obs"));
  seeds.Add("good_zstd", 4, packed);
  seeds.Add("good_memory", 5, FragmentOf(5));
  const std::string whole = FragmentOf(0).Bytes();
  seeds.Add("good_in_pieces", 0, 7, whole);
  v1::CollectRequest small;
  v1::Hello& hello = *small.mutable_hello();
  hello.set_protocol_major(2);
  hello.set_run_id("run");
  hello.set_actor_id("actor-1");
  hello.set_generation(1);
  hello.set_ticket_credits(2);
  hello.set_runners(1);
  *hello.mutable_env_spec() = Shapes()[2].spec;
  seeds.Add("good_hello", 0, 0, FrameHead(small));
  seeds.Add("bad_block_of_a_hello", 0, 0, FrameHead(small) + "block");
  seeds.Add("bad_no_frame", 0, 0, small.SerializeAsString());
  small.mutable_goodbye()->set_env_steps_collected(4);
  seeds.Add("good_goodbye", 0, 0, FrameHead(small));
  // A goodbye and field 1000, varint 5: of a version to come.
  seeds.Add("good_unknown_field", 0, 0, std::string("SKF\x02\x07\x00\x00\x00\x1a\x02\x08\x04\xc0\x3e\x05", 15));

  seeds.Add("bad_cut_off", 0, 0, whole.substr(0, whole.size() / 2));
  seeds.Add("bad_cut_off_header", 0, 0, whole.substr(0, 20));
  seeds.Add("bad_two_messages", 0, 0, whole + FrameHead(small));
  seeds.Add("bad_group", 0, 0, std::string("SKF\x02\x01\x00\x00\x00\x1b", 9));
  seeds.Add("bad_length_of_a_header", 0, 0, std::string("SKF\x02\xff\xff\xff\xff", 8));
  seeds.Add("bad_other_version", 0, 0, std::string("SKF\x03\x00\x00\x00\x00", 8));
  seeds.Add("bad_other_run", 1, FragmentOf(0));
  seeds.AddChanged("bad_bytes_missing", "obs", [](SampleField* field) { field->data.pop_back(); });
  seeds.AddChanged("bad_size_huge", "obs", [](SampleField* field) { field->claimed_bytes = uint64_t{1} << 40; });
  seeds.AddChanged("bad_size_overflows", "reward", [](SampleField* field) { field->claimed_bytes = ~uint64_t{0} - 3; });
  seeds.AddChanged("bad_name_long", "obs", [](SampleField* field) { field->name.assign(3000, 'o'); });
  seeds.AddChanged("bad_dtype", "obs", [](SampleField* field) { field->dtype = v1::DATA_TYPE_FLOAT64; });
  seeds.AddChanged("bad_nan", "obs", [](SampleField* field) { SetElement(field, 5, std::nanf("")); });
  seeds.AddChanged("bad_flag", "terminated", [](SampleField* field) { SetElement<uint8_t>(field, 0, 2); });
  seeds.AddChanged("bad_counts", "truncated", [](SampleField* field) { SetElement<uint8_t>(field, 0, 1); });
  seeds.AddChanged("bad_frame", "obs", [](SampleField* field) { field->compression = v1::COMPRESSION_ZSTD; });
  seeds.AddChanged("bad_name", "obs", [](SampleField* field) { field->name = "OBS"; });
  SampleFragment none = FragmentOf(0);
  none.header.set_group_envs(0);
  seeds.Add("bad_zero_envs", 0, none);
  SampleFragment many = FragmentOf(0);
  many.header.set_episodes(1u << 31);
  many.header.set_truncations(1u << 31);
  seeds.Add("bad_many_episodes", 0, many);
  SampleFragment bomb = FragmentOf(4);
  Compress(bomb.Find("obs"));
  bomb.Find("obs")->data.resize(60);
  seeds.Add("bad_zstd_cut_off", 4, bomb);
  return seeds.Take();
}

// What FuzzFrame takes.
std::string OfHeader(const v1::FragmentHeader& header, const std::string& block) {
  const std::string bytes = header.SerializeAsString();
  return absl::StrCat(std::string(1, static_cast<char>(bytes.size())), bytes, block);
}

}  // namespace

std::vector<Seed> WireSeeds() {
  std::vector<Seed> seeds = Trajectories();
  v1::FragmentHeader header = FragmentOf(2).header;
  header.add_fields()->set_name("obs");
  seeds.push_back({"frame", "good_fragment", OfHeader(header, "0123456789")});
  seeds.push_back({"frame", "good_large", OfHeader(header, std::string(5000, 'x'))});
  seeds.push_back({"frame", "good_empty_fragment", OfHeader({}, "")});
  seeds.push_back({"frame", "bad_header", std::string("\x02\x0a\x7f", 3)});

  v1::Tensor tensor;
  tensor.set_dtype(v1::DATA_TYPE_FLOAT32);
  for (int i = 0; i < 300; ++i) {
    const float value = 0.25f * static_cast<float>(i);
    tensor.mutable_data()->append(reinterpret_cast<const char*>(&value), sizeof(value));
  }
  seeds.push_back({"tensor_packing", "good_elements", absl::StrCat("\x10", tensor.data())});
  seeds.push_back({"tensor_packing", "good_bfloat16", absl::StrCat("\x20", tensor.data())});
  seeds.push_back({"tensor_packing", "bad_short", std::string("\x10", 1) + "abc"});
  tensor.set_dtype(v1::DATA_TYPE_FLOAT64);
  tensor.mutable_data()->resize(200 * sizeof(double));
  Compress(&tensor);
  const std::string head("\x01\xc8", 2);  // float64, 200 of them.
  seeds.push_back({"tensor_packing", "good_frame", head + tensor.data()});
  seeds.push_back({"tensor_packing", "bad_cut_off", head + tensor.data().substr(0, tensor.data().size() / 2)});
  seeds.push_back({"tensor_packing", "bad_size", std::string("\x01\xc7", 2) + tensor.data()});
  std::string flipped = tensor.data();
  flipped[flipped.size() / 2] = static_cast<char>(flipped[flipped.size() / 2] ^ 4);
  seeds.push_back({"tensor_packing", "bad_bit", head + flipped});
  return seeds;
}

}  // namespace skein::fuzz
