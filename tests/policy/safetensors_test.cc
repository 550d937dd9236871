// SPDX-License-Identifier: Apache-2.0
#include "policy/safetensors.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <map>
#include <string>
#include <vector>

#include "tests/testing/make_tensor.h"

namespace skein {
namespace {

using testing::HasSubstr;
using Metadata = std::map<std::string, std::string>;

std::string Length(uint64_t header_size) {
  std::string bytes(8, '\0');
  std::memcpy(bytes.data(), &header_size, 8);
  return bytes;
}

std::string File(const std::string& header, const std::string& data) { return Length(header.size()) + header + data; }

// A header with one tensor "x" of these fields.
std::string One(const std::string& fields) { return "{\"x\":{" + fields + "}}"; }

void ExpectCorrupt(const std::string& file, const std::string& part) {
  const absl::Status status = DecodeSafetensors(file).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss) << part;
  EXPECT_THAT(std::string(status.message()), HasSubstr(part));
}

std::vector<v1::Tensor> SomeTensors() {
  return {MakeTensor<float>("z.weight", v1::DATA_TYPE_FLOAT32, {3, 2}, {0, 3, 1, 4, 2, 5}),
          MakeTensor<double>("empty", v1::DATA_TYPE_FLOAT64, {0, 4}, {}),
          MakeTensor<uint8_t>("a", v1::DATA_TYPE_UINT8, {3}, {1, 2, 3}),
          MakeTensor<int64_t>("scalar", v1::DATA_TYPE_INT64, {}, {int64_t{1} << 40}),
          MakeTensor<int32_t>("int \"quoted\" \xC3\xA4", v1::DATA_TYPE_INT32, {2}, {-1, 7}),
          MakeTensor<double>("parameter", v1::DATA_TYPE_FLOAT64, {2}, {0.1, 0.2})};
}

TEST(Safetensors, HasTheBytesOfTheFormat) {
  const std::string file =
      EncodeSafetensors({MakeTensor<uint8_t>("x", v1::DATA_TYPE_UINT8, {2}, {1, 2})}, {{"k", "v"}});
  const std::string header = R"({"__metadata__":{"k":"v"},"x":{"dtype":"U8","shape":[2],"data_offsets":[0,2]}})";
  const std::string padding((8 - header.size() % 8) % 8, ' ');
  EXPECT_EQ(file, File(header + padding, "\1\2"));
}

TEST(Safetensors, RoundTripsNamesOrderTypesAndMetadata) {
  const std::vector<v1::Tensor> want = SomeTensors();
  const Metadata want_metadata = {{"format", "skein"}, {"steps", "12\n"}};
  Metadata metadata = {{"old", "gone"}};
  const auto got = DecodeSafetensors(EncodeSafetensors(want, want_metadata), &metadata);
  ASSERT_TRUE(got.ok()) << got.status();
  EXPECT_EQ(metadata, want_metadata);
  ASSERT_EQ(got->size(), want.size());
  for (size_t i = 0; i < want.size(); ++i) {
    EXPECT_EQ((*got)[i].SerializeAsString(), want[i].SerializeAsString()) << want[i].name();
  }
}

TEST(Safetensors, EqualInputGivesEqualBytes) {
  EXPECT_EQ(EncodeSafetensors(SomeTensors(), {{"b", "1"}, {"a", "2"}}),
            EncodeSafetensors(SomeTensors(), {{"a", "2"}, {"b", "1"}}));
}

TEST(Safetensors, DataBeginAtAMultipleOfEight) {
  for (size_t length = 1; length <= 9; ++length) {
    const std::string file =
        EncodeSafetensors({MakeTensor<float>(std::string(length, 'n'), v1::DATA_TYPE_FLOAT32, {2}, {0, 0})});
    EXPECT_EQ((file.size() - 8) % 8, 0u);
    EXPECT_TRUE(DecodeSafetensors(file).ok());
  }
}

TEST(Safetensors, NothingIsAFileToo) {
  Metadata metadata = {{"old", "gone"}};
  const auto got = DecodeSafetensors(EncodeSafetensors({}), &metadata);
  ASSERT_TRUE(got.ok()) << got.status();
  EXPECT_TRUE(got->empty());
  EXPECT_TRUE(metadata.empty());
}

TEST(Safetensors, DecodedTensorsOutliveTheInput) {
  const v1::Tensor tensor = MakeTensor<int32_t>("x", v1::DATA_TYPE_INT32, {2}, {5, 6});
  std::string file = EncodeSafetensors({tensor});
  const auto got = DecodeSafetensors(file);
  ASSERT_TRUE(got.ok()) << got.status();
  file.assign(file.size(), '\xFF');
  EXPECT_EQ((*got)[0].data(), tensor.data());
}

TEST(Safetensors, OrderIsThatOfTheOffsets) {
  const auto got = DecodeSafetensors(File(R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[1,2]},)"
                                          R"("b":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}})",
                                          "\1\2"));
  ASSERT_TRUE(got.ok()) << got.status();
  EXPECT_EQ((*got)[0].name(), "b");
  EXPECT_EQ((*got)[1].name(), "a");
  EXPECT_EQ((*got)[1].data(), "\2");
}

TEST(Safetensors, RefusesABadHeaderLength) {
  ExpectCorrupt("", "got 0 bytes, want at least 8");
  ExpectCorrupt("1234567", "got 7 bytes, want at least 8");
  ExpectCorrupt(Length(3) + "{}", "header length 3, want at most 100000000 and the 2 bytes that follow");
  ExpectCorrupt(Length(~uint64_t{0}) + "{}", "header length 18446744073709551615");
  ExpectCorrupt(Length(0), "header is not a JSON object");
}

TEST(Safetensors, RefusesAHeaderThatIsNoJsonObject) {
  for (const char* header : {"{", "[]", "7", "{\"x\":}", "nothing", " {}", "{}x", "{\"\xFF\":1}"}) {
    ExpectCorrupt(File(header, ""), "header is not a JSON object");
  }
  ExpectCorrupt(File(std::string(200000, '['), ""), "header is not a JSON object");
}

TEST(Safetensors, RefusesBadMetadata) {
  ExpectCorrupt(File("{\"__metadata__\":7}", ""), "__metadata__: want a JSON object");
  ExpectCorrupt(File("{\"__metadata__\":{\"k\":7}}", ""), "__metadata__: \"k\" is not a string");
}

TEST(Safetensors, RefusesABadEntry) {
  ExpectCorrupt(File("{\"x\":7}", ""), "tensor \"x\": want a JSON object");
  ExpectCorrupt(File(One(R"("shape":[1],"data_offsets":[0,1])"), "1"), "tensor \"x\": want a string dtype");
  ExpectCorrupt(File(One(R"("dtype":7,"shape":[1],"data_offsets":[0,1])"), "1"), "tensor \"x\": want a string dtype");
  ExpectCorrupt(File(One(R"("dtype":"BF16","shape":[1],"data_offsets":[0,2])"), "12"), "got dtype \"BF16\", want F32");
}

TEST(Safetensors, RefusesABadShape) {
  for (const char* shape : {"7", "[-1]", "[1.5]", "[\"1\"]", "{}", "null"}) {
    const std::string fields = std::string(R"("dtype":"U8","data_offsets":[0,1],"shape":)") + shape;
    ExpectCorrupt(File(One(fields), "1"), "tensor \"x\": want a shape of integers >= 0");
  }
  for (const char* shape : {"[4294967296,4294967296]", "[18446744073709551615]", "[0,1099511627776,1099511627776]",
                            "[1,1,1,1,1,1,1,1,1]"}) {
    const std::string fields = std::string(R"("dtype":"U8","data_offsets":[0,0],"shape":)") + shape;
    ExpectCorrupt(File(One(fields), ""), "tensor \"x\": shape is too large");
  }
}

TEST(Safetensors, RefusesBadOffsets) {
  for (const char* offsets : {"7", "[0]", "[0,1,2]", "[-1,0]", "[0,1.0]", "null"}) {
    const std::string fields = std::string(R"("dtype":"U8","shape":[1],"data_offsets":)") + offsets;
    ExpectCorrupt(File(One(fields), "1"), "tensor \"x\": want two data_offsets >= 0");
  }
  ExpectCorrupt(File(One(R"("dtype":"U8","shape":[1],"data_offsets":[1,0])"), "1"),
                "data_offsets [1, 0], want 1 bytes");
  ExpectCorrupt(File(One(R"("dtype":"F32","shape":[2],"data_offsets":[0,4])"), "1234"),
                "data_offsets [0, 4], want 8 bytes");
}

TEST(Safetensors, RefusesTensorsThatDoNotTileTheData) {
  // Nothing of a declared terabyte is allocated.
  ExpectCorrupt(File(One(R"("dtype":"U8","shape":[1099511627776],"data_offsets":[0,1099511627776])"), "1"),
                "tensors end at byte 1099511627776, but there are 1 bytes of data");
  ExpectCorrupt(File(One(R"("dtype":"U8","shape":[1],"data_offsets":[0,1])"), "12"),
                "tensors end at byte 1, but there are 2 bytes of data");
  ExpectCorrupt(File(One(R"("dtype":"U8","shape":[1],"data_offsets":[1,2])"), "12"),
                "tensor \"x\": begins at byte 1, which leaves a gap, want 0");
  ExpectCorrupt(File(R"({"a":{"dtype":"U8","shape":[2],"data_offsets":[0,2]},)"
                     R"("b":{"dtype":"U8","shape":[2],"data_offsets":[1,3]}})",
                     "123"),
                "tensor \"b\": begins at byte 1, which overlaps the tensor before, want 2");
}

TEST(Safetensors, NoTruncationIsAccepted) {
  const std::string file = EncodeSafetensors(SomeTensors(), {{"k", "v"}});
  for (size_t size = 0; size < file.size(); ++size) {
    EXPECT_EQ(DecodeSafetensors(absl::string_view(file).substr(0, size)).status().code(), absl::StatusCode::kDataLoss);
  }
}

}  // namespace
}  // namespace skein
