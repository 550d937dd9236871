// SPDX-License-Identifier: Apache-2.0
#include "learner/network/tensor_codec.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/types.h>

#include <string>
#include <vector>

#include "base/number/tensor_packing.h"
#include "policy/tensor_check.h"

namespace skein {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

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

// Neither a view nor a copy may accept it.
void ExpectUnreadable(const v1::Tensor& wire, const std::string& part) {
  ExpectInvalid(ViewTensor(wire, "obs").status(), part);
  ExpectInvalid(DecodeTensor(wire, "obs").status(), part);
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

TEST(TensorCodec, RefusesWhatIsNotConsistent) {
  ExpectUnreadable(Wire(v1::DATA_TYPE_UNSPECIFIED, {2}, 8), "obs: got DATA_TYPE_UNSPECIFIED");
  ExpectUnreadable(Wire(v1::DATA_TYPE_FLOAT32, {2, 3}, 23), "obs: got 23 bytes, want 24 for DATA_TYPE_FLOAT32 [2, 3]");
  // 2^32 * 2^32 = 2^64, which would wrap to 0.
  ExpectUnreadable(Wire(v1::DATA_TYPE_UINT8, {int64_t{1} << 32, int64_t{1} << 32}, 0), "obs: bad shape");
}

TEST(DecodeTensor, DecompressesAndKeepsBfloat16) {
  const torch::Tensor tensor = torch::linspace(1, 2, 2000).view({20, 100});
  v1::Tensor wire;
  EncodeTensor("x", tensor, &wire);
  Narrow(&wire);
  Compress(&wire);
  ASSERT_EQ(wire.compression(), v1::COMPRESSION_ZSTD);
  EXPECT_TRUE(CheckTensor(wire, "x", v1::DATA_TYPE_BFLOAT16, {20, 100}).ok());
  const auto copy = DecodeTensor(wire, "x");
  ASSERT_TRUE(copy.ok()) << copy.status();
  EXPECT_TRUE(copy->equal(tensor.to(torch::kBFloat16)));
  ExpectInvalid(ViewTensor(wire, "x").status(), "x: is compressed and cannot be read in place");
  wire.set_compression(static_cast<v1::Compression>(5));
  ExpectInvalid(DecodeTensor(wire, "x").status(), "x: got compression 5, want none or zstd");
}

TEST(DecodeTensors, BringsBackWhatEncodeTensorsTook) {
  const NamedTensors want = {{"a", torch::arange(4, torch::kFloat64)}, {"b", torch::ones({2, 2}, torch::kInt64)}};
  std::vector<v1::Tensor> wire = EncodeTensors(want);
  const auto got = DecodeTensors(wire);
  ASSERT_TRUE(got.ok()) << got.status();
  ASSERT_EQ(got->size(), 2u);
  for (size_t i = 0; i < 2; ++i) {
    EXPECT_EQ((*got)[i].first, want[i].first);
    EXPECT_TRUE((*got)[i].second.equal(want[i].second));
  }
  wire[1].mutable_data()->pop_back();
  ExpectInvalid(DecodeTensors(wire).status(), "b: got 31 bytes, want 32");
}

}  // namespace
}  // namespace skein
