// SPDX-License-Identifier: Apache-2.0
#include "base/number/tensor_packing.h"

#include <zstd.h>

#include <cmath>
#include <cstring>
#include <random>
#include <string>

#include "base/number/bfloat16.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace skein {
namespace {

using testing::HasSubstr;

v1::Tensor MakeTensor(v1::DataType dtype, int64_t count, std::string data) {
  v1::Tensor tensor;
  tensor.set_dtype(dtype);
  tensor.add_shape(count);
  tensor.set_data(std::move(data));
  return tensor;
}

// A slow wave in float32: exponents repeat, last digits do not.
v1::Tensor Wave(int64_t count) {
  std::string data;
  for (int64_t i = 0; i < count; ++i) {
    const float value = std::sin(static_cast<float>(i) * 0.01f) * 3 + 4;
    data.append(reinterpret_cast<const char*>(&value), sizeof(value));
  }
  return MakeTensor(v1::DATA_TYPE_FLOAT32, count, data);
}

std::string Content(const v1::Tensor& tensor, size_t size) {
  std::string content(size, '\0');
  const absl::Status status = Decompress(tensor.data(), tensor.dtype(), size, content.data());
  EXPECT_TRUE(status.ok()) << status;
  return content;
}

void ExpectRefused(absl::Span<const char> frame, size_t size, const std::string& message) {
  std::string to(size, '\0');
  const absl::Status status = Decompress(frame, v1::DATA_TYPE_FLOAT32, size, to.data());
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), HasSubstr(message));
}

TEST(Narrow, HalvesATensorAndRoundsIt) {
  v1::Tensor tensor = Wave(100);
  std::vector<float> want(100), got(100);
  std::memcpy(want.data(), tensor.data().data(), tensor.data().size());
  RoundToBfloat16(want.data(), want.size());
  Narrow(&tensor);
  EXPECT_EQ(tensor.dtype(), v1::DATA_TYPE_BFLOAT16);
  ASSERT_EQ(tensor.data().size(), 200u);
  FromBfloat16(reinterpret_cast<const uint16_t*>(tensor.data().data()), got.size(), got.data());
  EXPECT_EQ(got, want);
}

TEST(Compress, MakesEveryTypeSmallerAndComesBackToTheBit) {
  for (const v1::DataType dtype : {v1::DATA_TYPE_FLOAT32, v1::DATA_TYPE_FLOAT64, v1::DATA_TYPE_INT64,
                                   v1::DATA_TYPE_INT32, v1::DATA_TYPE_UINT8, v1::DATA_TYPE_BFLOAT16}) {
    const std::string plain = Wave(1000).data();
    v1::Tensor tensor = MakeTensor(dtype, 4000 / ElementSize(dtype), plain);
    Compress(&tensor);
    EXPECT_EQ(tensor.compression(), v1::COMPRESSION_ZSTD);
    EXPECT_LT(tensor.data().size(), plain.size());
    EXPECT_TRUE(CheckFrame(absl::Span<const char>(tensor.data()).first(kFrameHeadBytes), 4000).ok());
    EXPECT_EQ(Content(tensor, 4000), plain);
  }
}

TEST(Compress, IsTheSameEachTime) {
  v1::Tensor once = Wave(5000), again = Wave(5000), between = Wave(700);
  Compress(&once);
  Compress(&between);
  Compress(&again);
  EXPECT_EQ(once.data(), again.data());
}

TEST(Compress, LeavesSmallTensorsAndNoiseAlone) {
  v1::Tensor small = Wave(255);  // 1,020 bytes.
  std::string noise(5000, '\0');
  std::mt19937 random(3);
  for (char& byte : noise) byte = static_cast<char>(random());
  v1::Tensor incompressible = MakeTensor(v1::DATA_TYPE_UINT8, 5000, noise);
  for (v1::Tensor* tensor : {&small, &incompressible}) {
    const v1::Tensor before = *tensor;
    Compress(tensor);
    EXPECT_EQ(tensor->SerializeAsString(), before.SerializeAsString());
  }
}

TEST(SavedBytes, AddsUpWhatBothSave) {
  google::protobuf::RepeatedPtrField<v1::Tensor> tensors;
  for (int i = 0; i < 3; ++i) *tensors.Add() = Wave(1000);
  EXPECT_EQ(SavedBytes(tensors), 0u);
  Narrow(&tensors[0]);
  EXPECT_EQ(SavedBytes(tensors), 2000u);
  Compress(&tensors[1]);
  EXPECT_EQ(SavedBytes(tensors), 2000u + 4000u - tensors[1].data().size());
  Compress(&tensors[0]);
  EXPECT_EQ(SavedBytes(tensors), 8000u - tensors[0].data().size() - tensors[1].data().size());
}

TEST(Decompress, RefusesWhatIsNoFrame) {
  ExpectRefused({}, 4000, "is no zstd frame");
  ExpectRefused(std::string(100, 'x'), 4000, "is no zstd frame");
  ExpectRefused(Wave(1000).data(), 4000, "is no zstd frame");
}

TEST(Decompress, RefusesAFrameOfAnotherSizeBeforeItReadsIt) {
  v1::Tensor tensor = Wave(1000);
  Compress(&tensor);
  ExpectRefused(tensor.data(), 3996, "its zstd frame holds 4000 bytes, its shape and dtype want 3996");
  ExpectRefused(tensor.data(), 4004, "its zstd frame holds 4000 bytes, its shape and dtype want 4004");
  // 64 MiB of zeros are a frame of some kilobytes; its first bytes are enough to refuse it.
  const std::string zeros(64 << 20, '\0');
  std::string bomb(ZSTD_compressBound(zeros.size()), '\0');
  bomb.resize(ZSTD_compress(bomb.data(), bomb.size(), zeros.data(), zeros.size(), 1));
  EXPECT_LT(bomb.size(), 10000u);
  EXPECT_EQ(CheckFrame(absl::Span<const char>(bomb).first(kFrameHeadBytes), 4000).message(),
            "its zstd frame holds 67108864 bytes, its shape and dtype want 4000");
  ExpectRefused(bomb, 4000, "67108864");
}

TEST(Decompress, RefusesAFrameThatHoldsMoreOrLessThanItSays) {
  // Frame header: magic (4 bytes), descriptor, and with a window of its own none: the size as two bytes less 256.
  const std::string plain(5000, 'a');
  std::string frame(ZSTD_compressBound(plain.size()), '\0');
  frame.resize(ZSTD_compress(frame.data(), frame.size(), plain.data(), plain.size(), 1));
  ASSERT_EQ(ZSTD_getFrameContentSize(frame.data(), frame.size()), 5000u);
  for (const uint16_t said : {4000, 6000}) {
    std::string lie = frame;
    const auto field = static_cast<uint16_t>(said - 256);
    std::memcpy(lie.data() + 5, &field, sizeof(field));
    ASSERT_EQ(ZSTD_getFrameContentSize(lie.data(), lie.size()), said);
    ExpectRefused(lie, said, "its zstd frame is damaged");
  }
  const std::string twice = frame + frame;
  ExpectRefused(twice, 5000, "its zstd frame is damaged");
}

TEST(Decompress, RefusesAFrameThatDoesNotSayItsSize) {
  ZSTD_CCtx* const context = ZSTD_createCCtx();
  ZSTD_CCtx_setParameter(context, ZSTD_c_contentSizeFlag, 0);
  const std::string plain = Wave(1000).data();
  std::string frame(ZSTD_compressBound(plain.size()), '\0');
  frame.resize(ZSTD_compress2(context, frame.data(), frame.size(), plain.data(), plain.size()));
  ZSTD_freeCCtx(context);
  ExpectRefused(frame, 4000, "does not say its size");
}

TEST(Decompress, RefusesEveryTruncation) {
  v1::Tensor tensor = Wave(300);
  Compress(&tensor);
  for (size_t size = 0; size < tensor.data().size(); ++size) {
    ExpectRefused(absl::Span<const char>(tensor.data()).first(size), 1200, "");
  }
}

// The checksum is of the content: what is refused or not is one bit away from a good frame.
TEST(Decompress, NeverTakesADamagedFrameForAnotherContent) {
  v1::Tensor tensor = Wave(300);
  const std::string plain = tensor.data();
  Compress(&tensor);
  int refused = 0;
  for (size_t bit = 0; bit < tensor.data().size() * 8; ++bit) {
    std::string damaged = tensor.data();
    damaged[bit / 8] = static_cast<char>(damaged[bit / 8] ^ (1 << (bit % 8)));
    std::string got(plain.size(), '\0');
    if (Decompress(damaged, tensor.dtype(), got.size(), got.data()).ok()) {
      ASSERT_EQ(got, plain) << bit;
    } else {
      ++refused;
    }
  }
  EXPECT_GT(refused, static_cast<int>(tensor.data().size()) * 7);
}

}  // namespace
}  // namespace skein
