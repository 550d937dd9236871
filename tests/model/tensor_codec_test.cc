// SPDX-License-Identifier: Apache-2.0
#include "learner/network/tensor_codec.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/types.h>

#include <limits>
#include <string>
#include <vector>

#include "base/number/tensor_packing.h"

namespace skein {
namespace {

using testing::ElementsAre;
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

// Neither a view nor a copy nor a check may accept it.
void ExpectUnreadable(const v1::Tensor& wire, const std::string& part) {
  ExpectInvalid(ViewTensor(wire, "obs").status(), part);
  ExpectInvalid(DecodeTensor(wire, "obs").status(), part);
  EXPECT_FALSE(CheckTensor(wire, "obs", torch::kFloat32, {wire.shape().begin(), wire.shape().end()}).ok());
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

TEST(TensorCodec, RoundTripsEveryDtype) {
  for (const auto dtype : {torch::kFloat32, torch::kFloat64, torch::kInt64, torch::kInt32, torch::kUInt8}) {
    const torch::Tensor tensor = torch::arange(12).view({2, 2, 3}).to(dtype);
    v1::Tensor wire;
    EncodeTensor("obs", tensor, &wire);
    EXPECT_EQ(wire.name(), "obs");
    EXPECT_THAT(wire.shape(), ElementsAre(2, 2, 3));
    EXPECT_EQ(wire.data().size(), 12 * c10::elementSize(dtype));
    const auto view = ViewTensor(wire, "obs");
    const auto copy = DecodeTensor(wire, "obs");
    ASSERT_TRUE(view.ok()) << view.status();
    ASSERT_TRUE(copy.ok()) << copy.status();
    EXPECT_EQ(view->scalar_type(), dtype);
    EXPECT_TRUE(view->equal(tensor));
    EXPECT_TRUE(copy->equal(tensor));
    EXPECT_TRUE(CheckTensor(wire, "obs", dtype, {2, 2, 3}).ok());
  }
}

TEST(TensorCodec, BytesAreLittleEndianRowMajor) {
  v1::Tensor wire;
  EncodeTensor("x", torch::tensor({1, 258, 3, -1}, torch::kInt32).view({2, 2}), &wire);
  // 258 = 0x0102.
  EXPECT_EQ(wire.data(), std::string("\1\0\0\0\2\1\0\0\3\0\0\0\377\377\377\377", 16));
}

TEST(TensorCodec, EncodesStridesScalarsEmptyOnesAndParameters) {
  const torch::Tensor matrix = torch::arange(6, torch::kFloat32).view({2, 3});
  for (const torch::Tensor& tensor :
       {matrix.t(), torch::tensor(2.5f), torch::empty({0, 4}), matrix.clone().requires_grad_()}) {
    v1::Tensor wire;
    // What was in the message before is gone.
    wire.add_shape(99);
    EncodeTensor("x", tensor, &wire);
    const auto copy = DecodeTensor(wire, "x");
    ASSERT_TRUE(copy.ok()) << copy.status();
    EXPECT_TRUE(copy->equal(tensor.detach()));
  }
}

TEST(TensorCodec, AViewReadsInPlaceAndACopyDoesNot) {
  v1::Tensor wire;
  EncodeTensor("x", torch::zeros({16}, torch::kUInt8), &wire);
  const auto view = ViewTensor(wire, "x");
  const auto copy = DecodeTensor(wire, "x");
  (*wire.mutable_data())[3] = 7;
  EXPECT_EQ((*view)[3].item<int>(), 7);
  EXPECT_EQ((*copy)[3].item<int>(), 0);
}

TEST(TensorCodec, RefusesToEncodeOtherDtypes) {
  v1::Tensor wire;
  EXPECT_THROW(EncodeTensor("x", torch::zeros({2}, torch::kBool), &wire), c10::Error);
}

TEST(TensorCodec, RefusesUnknownDtypes) {
  ExpectUnreadable(Wire(v1::DATA_TYPE_UNSPECIFIED, {2}, 8), "obs: got DATA_TYPE_UNSPECIFIED");
  ExpectUnreadable(Wire(static_cast<v1::DataType>(77), {2}, 8), "obs: got unknown dtype 77");
}

TEST(TensorCodec, RefusesBadExtents) {
  ExpectUnreadable(Wire(v1::DATA_TYPE_FLOAT32, {2, -1}, 8), "obs: bad shape [2, -1]");
  ExpectUnreadable(Wire(v1::DATA_TYPE_FLOAT32, {1, 1, 1, 1, 1, 1, 1, 1, 1}, 4), "1, ...], want at most 8 extents");
}

TEST(TensorCodec, RefusesProductsThatOverflow) {
  ExpectUnreadable(Wire(v1::DATA_TYPE_FLOAT32, {kHuge, kHuge}, 0), "obs: bad shape [1099511627776, 1099511627776]");
  // 2^32 * 2^32 = 2^64, which would wrap to 0.
  ExpectUnreadable(Wire(v1::DATA_TYPE_UINT8, {int64_t{1} << 32, int64_t{1} << 32}, 0), "obs: bad shape");
  ExpectUnreadable(Wire(v1::DATA_TYPE_FLOAT32, {0, kHuge, kHuge}, 0), "obs: bad shape");
}

TEST(TensorCodec, RefusesDataOfAnotherSize) {
  ExpectUnreadable(Wire(v1::DATA_TYPE_FLOAT32, {2, 3}, 23), "obs: got 23 bytes, want 24 for DATA_TYPE_FLOAT32 [2, 3]");
  ExpectUnreadable(Wire(v1::DATA_TYPE_FLOAT32, {2, 3}, 25), "obs: got 25 bytes, want 24");
  ExpectUnreadable(Wire(v1::DATA_TYPE_FLOAT32, {}, 0), "obs: got 0 bytes, want 4");
  ExpectUnreadable(Wire(v1::DATA_TYPE_FLOAT32, {kHuge}, 4), "obs: got 4 bytes, want 4398046511104");
}

TEST(DecodeTensor, DecompressesAndKeepsBfloat16) {
  const torch::Tensor tensor = torch::linspace(1, 2, 2000).view({20, 100});
  v1::Tensor wire;
  EncodeTensor("x", tensor, &wire);
  Narrow(&wire);
  Compress(&wire);
  ASSERT_EQ(wire.compression(), v1::COMPRESSION_ZSTD);
  EXPECT_TRUE(CheckTensor(wire, "x", torch::kBFloat16, {20, 100}).ok());
  const auto copy = DecodeTensor(wire, "x");
  ASSERT_TRUE(copy.ok()) << copy.status();
  EXPECT_TRUE(copy->equal(tensor.to(torch::kBFloat16)));
  ExpectInvalid(ViewTensor(wire, "x").status(), "x: is compressed and cannot be read in place");
  wire.set_compression(static_cast<v1::Compression>(5));
  ExpectInvalid(DecodeTensor(wire, "x").status(), "x: got compression 5, want none or zstd");
}

TEST(CheckTensor, SaysGotAndWant) {
  const v1::Tensor wire = Wire(v1::DATA_TYPE_FLOAT32, {2, 3}, 24);
  EXPECT_TRUE(CheckTensor(wire, "obs", torch::kFloat32, {2, 3}).ok());
  ExpectInvalid(CheckTensor(wire, "obs", torch::kInt64, {2, 3}), "obs: got DATA_TYPE_FLOAT32, want DATA_TYPE_INT64");
  ExpectInvalid(CheckTensor(wire, "obs", torch::kFloat32, {2, 4}), "obs: got shape [2, 3], want [2, 4]");
  ExpectInvalid(CheckTensor(wire, "obs", torch::kFloat32, {2}), "obs: got shape [2, 3], want [2]");
  ExpectInvalid(CheckTensor(wire, "obs", torch::kFloat32, {2, 3, 1}), "obs: got shape [2, 3], want [2, 3, 1]");
}

TEST(CheckTensor, MinusOneAllowsAnyExtentButNoNegativeOne) {
  EXPECT_TRUE(CheckTensor(Wire(v1::DATA_TYPE_FLOAT32, {2, 3}, 24), "obs", torch::kFloat32, {-1, 3}).ok());
  EXPECT_TRUE(CheckTensor(Wire(v1::DATA_TYPE_FLOAT32, {0, 3}, 0), "obs", torch::kFloat32, {-1, 3}).ok());
  ExpectInvalid(CheckTensor(Wire(v1::DATA_TYPE_FLOAT32, {-1, 3}, 0), "obs", torch::kFloat32, {-1, 3}),
                "obs: got shape [-1, 3], want [-1, 3]");
}

}  // namespace
}  // namespace skein
