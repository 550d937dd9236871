// SPDX-License-Identifier: Apache-2.0
#include "policy/tensor_check.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "base/number/tensor_packing.h"

namespace skein {
namespace {

using testing::HasSubstr;

constexpr int64_t kHuge = int64_t{1} << 40;

v1::Tensor Wire(v1::DataType dtype, const std::vector<int64_t>& shape, size_t bytes) {
  v1::Tensor wire;
  wire.set_dtype(dtype);
  wire.mutable_shape()->Assign(shape.begin(), shape.end());
  wire.set_data(std::string(bytes, '\0'));
  return wire;
}

void ExpectInvalid(const absl::Status& status, const std::string& part) {
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << part;
  EXPECT_THAT(std::string(status.message()), HasSubstr(part));
}

void ExpectInconsistent(const v1::Tensor& wire, const std::string& part) {
  ExpectInvalid(CheckConsistent(wire, "obs"), part);
}

TEST(ByteSize, MultipliesExtents) {
  EXPECT_EQ(ByteSize({}, 8), 8);
  EXPECT_EQ(ByteSize({2, 3}, 4), 24);
  EXPECT_EQ(ByteSize({2, 0, 3}, 4), 0);
  EXPECT_EQ(ByteSize({1, 1, 1, 1, 1, 1, 1, 1}, 1), 1);
}

TEST(ByteSize, RefusesWhatCannotBe) {
  EXPECT_EQ(ByteSize({2, -1}, 4), std::nullopt);
  EXPECT_EQ(ByteSize({0, -1}, 4), std::nullopt);
  EXPECT_EQ(ByteSize({1, 1, 1, 1, 1, 1, 1, 1, 1}, 1), std::nullopt);
  EXPECT_EQ(ByteSize({kHuge, kHuge}, 1), std::nullopt);
  EXPECT_EQ(ByteSize({kHuge, 0, kHuge}, 1), std::nullopt);
  EXPECT_EQ(ByteSize({std::numeric_limits<int64_t>::max()}, 2), std::nullopt);
  EXPECT_EQ(ByteSize({std::numeric_limits<int64_t>::max()}, 1), std::numeric_limits<int64_t>::max());
}

TEST(CheckConsistent, RefusesUnknownDtypes) {
  ExpectInconsistent(Wire(v1::DATA_TYPE_UNSPECIFIED, {2}, 8), "obs: got DATA_TYPE_UNSPECIFIED");
  ExpectInconsistent(Wire(static_cast<v1::DataType>(77), {2}, 8), "obs: got unknown dtype 77");
}

TEST(CheckConsistent, RefusesBadExtents) {
  ExpectInconsistent(Wire(v1::DATA_TYPE_FLOAT32, {2, -1}, 8), "obs: bad shape [2, -1]");
  ExpectInconsistent(Wire(v1::DATA_TYPE_FLOAT32, {1, 1, 1, 1, 1, 1, 1, 1, 1}, 4), "1, ...], want at most 8 extents");
}

TEST(CheckConsistent, RefusesProductsThatOverflow) {
  ExpectInconsistent(Wire(v1::DATA_TYPE_FLOAT32, {kHuge, kHuge}, 0), "obs: bad shape [1099511627776, 1099511627776]");
  // 2^32 * 2^32 = 2^64, which would wrap to 0.
  ExpectInconsistent(Wire(v1::DATA_TYPE_UINT8, {int64_t{1} << 32, int64_t{1} << 32}, 0), "obs: bad shape");
  ExpectInconsistent(Wire(v1::DATA_TYPE_FLOAT32, {0, kHuge, kHuge}, 0), "obs: bad shape");
}

TEST(CheckConsistent, RefusesDataOfAnotherSize) {
  ExpectInconsistent(Wire(v1::DATA_TYPE_FLOAT32, {2, 3}, 23),
                     "obs: got 23 bytes, want 24 for DATA_TYPE_FLOAT32 [2, 3]");
  ExpectInconsistent(Wire(v1::DATA_TYPE_FLOAT32, {2, 3}, 25), "obs: got 25 bytes, want 24");
  ExpectInconsistent(Wire(v1::DATA_TYPE_FLOAT32, {}, 0), "obs: got 0 bytes, want 4");
  ExpectInconsistent(Wire(v1::DATA_TYPE_FLOAT32, {kHuge}, 4), "obs: got 4 bytes, want 4398046511104");
}

TEST(CheckConsistent, RefusesAnUnknownCompression) {
  v1::Tensor wire = Wire(v1::DATA_TYPE_FLOAT32, {2}, 8);
  wire.set_compression(static_cast<v1::Compression>(5));
  ExpectInconsistent(wire, "obs: got compression 5, want none or zstd");
}

TEST(CheckTensor, SaysGotAndWant) {
  const v1::Tensor wire = Wire(v1::DATA_TYPE_FLOAT32, {2, 3}, 24);
  EXPECT_TRUE(CheckTensor(wire, "obs", v1::DATA_TYPE_FLOAT32, {2, 3}).ok());
  ExpectInvalid(CheckTensor(wire, "obs", v1::DATA_TYPE_INT64, {2, 3}),
                "obs: got DATA_TYPE_FLOAT32, want DATA_TYPE_INT64");
  ExpectInvalid(CheckTensor(wire, "obs", v1::DATA_TYPE_FLOAT32, {2, 4}), "obs: got shape [2, 3], want [2, 4]");
  ExpectInvalid(CheckTensor(wire, "obs", v1::DATA_TYPE_FLOAT32, {2}), "obs: got shape [2, 3], want [2]");
  ExpectInvalid(CheckTensor(wire, "obs", v1::DATA_TYPE_FLOAT32, {2, 3, 1}), "obs: got shape [2, 3], want [2, 3, 1]");
}

TEST(CheckTensor, MinusOneAllowsAnyExtentButNoNegativeOne) {
  EXPECT_TRUE(CheckTensor(Wire(v1::DATA_TYPE_FLOAT32, {2, 3}, 24), "obs", v1::DATA_TYPE_FLOAT32, {-1, 3}).ok());
  EXPECT_TRUE(CheckTensor(Wire(v1::DATA_TYPE_FLOAT32, {0, 3}, 0), "obs", v1::DATA_TYPE_FLOAT32, {-1, 3}).ok());
  ExpectInvalid(CheckTensor(Wire(v1::DATA_TYPE_FLOAT32, {-1, 3}, 0), "obs", v1::DATA_TYPE_FLOAT32, {-1, 3}),
                "obs: got shape [-1, 3], want [-1, 3]");
}

v1::Tensor Floats(const std::vector<float>& values) {
  v1::Tensor tensor = Wire(v1::DATA_TYPE_FLOAT32, {static_cast<int64_t>(values.size())}, 0);
  tensor.set_data(values.data(), values.size() * sizeof(float));
  return tensor;
}

TEST(DecodeFloats, ReadsEveryForm) {
  std::vector<float> values(2000);
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i) / 256;  // bfloat16 has the first few.
  v1::Tensor tensor = Floats(values);
  EXPECT_EQ(DecodeFloats(tensor, "x").value(), values);
  Compress(&tensor);
  ASSERT_EQ(tensor.compression(), v1::COMPRESSION_ZSTD);
  EXPECT_EQ(DecodeFloats(tensor, "x").value(), values);
  v1::Tensor narrow = Floats({0.5f, -3, 256, 1.00390625f});
  Narrow(&narrow);
  EXPECT_EQ(DecodeFloats(narrow, "x").value(), (std::vector<float>{0.5f, -3, 256, 1}));
  EXPECT_TRUE(DecodeFloats(Floats({}), "x").value().empty());
  (*tensor.mutable_data())[tensor.data().size() / 2] ^= 1;
  ExpectInvalid(DecodeFloats(tensor, "x").status(), "x: its zstd frame is damaged");
}

}  // namespace
}  // namespace skein
