// SPDX-License-Identifier: Apache-2.0
#include "base/number/tensor_packing.h"

#include <zstd.h>

#include <algorithm>
#include <memory>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/number/bfloat16.h"

namespace skein {
namespace {

// Smaller tensors are not worth a frame.
constexpr size_t kCompressedFrom = 1024;
// The quickest of zstd's normal ones: what is left to find in the digits of measurements is little.
constexpr int kLevel = 1;

// Of elements of `size` bytes each: all first bytes, then all second ones. Sign and exponent, which repeat themselves,
// come together that way, and the digits that do not are apart.
void GroupBytes(const char* from, size_t count, size_t size, char* to) {
  for (size_t byte = 0; byte < size; ++byte) {
    for (size_t i = 0; i < count; ++i) to[byte * count + i] = from[i * size + byte];
  }
}

void UngroupBytes(const char* from, size_t count, size_t size, char* to) {
  for (size_t byte = 0; byte < size; ++byte) {
    for (size_t i = 0; i < count; ++i) to[i * size + byte] = from[byte * count + i];
  }
}

struct Free {
  void operator()(ZSTD_CCtx* context) const { ZSTD_freeCCtx(context); }
  void operator()(ZSTD_DCtx* context) const { ZSTD_freeDCtx(context); }
};

ZSTD_CCtx* Compressor() {
  thread_local const std::unique_ptr<ZSTD_CCtx, Free> context(ZSTD_createCCtx());
  return context.get();
}

ZSTD_DCtx* Decompressor() {
  thread_local const std::unique_ptr<ZSTD_DCtx, Free> context(ZSTD_createDCtx());
  return context.get();
}

}  // namespace

int64_t ElementSize(v1::DataType dtype) {
  switch (dtype) {
    case v1::DATA_TYPE_FLOAT64:
    case v1::DATA_TYPE_INT64:
      return 8;
    case v1::DATA_TYPE_FLOAT32:
    case v1::DATA_TYPE_INT32:
      return 4;
    case v1::DATA_TYPE_BFLOAT16:
      return 2;
    case v1::DATA_TYPE_UINT8:
      return 1;
    default:
      return 0;
  }
}

uint64_t SavedBytes(const google::protobuf::RepeatedPtrField<v1::Tensor>& tensors) {
  uint64_t saved = 0;
  for (const v1::Tensor& tensor : tensors) {
    const v1::DataType dtype = tensor.dtype() == v1::DATA_TYPE_BFLOAT16 ? v1::DATA_TYPE_FLOAT32 : tensor.dtype();
    auto bytes = static_cast<uint64_t>(ElementSize(dtype));
    for (const int64_t extent : tensor.shape()) bytes *= static_cast<uint64_t>(extent);
    saved += bytes - tensor.data().size();
  }
  return saved;
}

void Narrow(v1::Tensor* tensor) {
  const size_t count = tensor->data().size() / sizeof(float);
  std::string narrow(count * sizeof(uint16_t), '\0');
  ToBfloat16(reinterpret_cast<const float*>(tensor->data().data()), count, reinterpret_cast<uint16_t*>(narrow.data()));
  tensor->set_dtype(v1::DATA_TYPE_BFLOAT16);
  *tensor->mutable_data() = std::move(narrow);
}

void Compress(v1::Tensor* tensor) {
  const std::string& data = tensor->data();
  const auto size = static_cast<size_t>(ElementSize(tensor->dtype()));
  if (data.size() < kCompressedFrom || size == 0) return;
  std::string grouped(data.size(), '\0');
  GroupBytes(data.data(), data.size() / size, size, grouped.data());
  ZSTD_CCtx* const context = Compressor();
  ZSTD_CCtx_setParameter(context, ZSTD_c_compressionLevel, kLevel);
  ZSTD_CCtx_setParameter(context, ZSTD_c_checksumFlag, 1);
  // No room for a frame that is not smaller: that is an error like any other, and the tensor stays as it is.
  std::string frame(data.size() - 1, '\0');
  const size_t bytes = ZSTD_compress2(context, frame.data(), frame.size(), grouped.data(), grouped.size());
  if (ZSTD_isError(bytes)) return;
  frame.resize(bytes);
  frame.shrink_to_fit();
  *tensor->mutable_data() = std::move(frame);
  tensor->set_compression(v1::COMPRESSION_ZSTD);
}

absl::Status CheckFrame(absl::Span<const char> head, uint64_t size) {
  const unsigned long long held = ZSTD_getFrameContentSize(head.data(), head.size());
  if (held == ZSTD_CONTENTSIZE_ERROR) return absl::InvalidArgumentError("is no zstd frame");
  if (held == ZSTD_CONTENTSIZE_UNKNOWN) return absl::InvalidArgumentError("its zstd frame does not say its size");
  if (held == size) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("its zstd frame holds ", held, " bytes, its shape and dtype want ", size));
}

absl::Status Decompress(absl::Span<const char> frame, v1::DataType dtype, size_t size, char* to) {
  if (absl::Status s = CheckFrame(frame.first(std::min(frame.size(), kFrameHeadBytes)), size); !s.ok()) return s;
  std::string grouped(size, '\0');
  const size_t held = ZSTD_decompressDCtx(Decompressor(), grouped.data(), size, frame.data(), frame.size());
  if (ZSTD_isError(held)) {
    return absl::InvalidArgumentError(absl::StrCat("its zstd frame is damaged: ", ZSTD_getErrorName(held)));
  }
  if (held != size) {
    return absl::InvalidArgumentError(
        absl::StrCat("its zstd frame holds ", held, " bytes, its shape and dtype want ", size));
  }
  const auto element = static_cast<size_t>(ElementSize(dtype));
  UngroupBytes(grouped.data(), size / element, element, to);
  return absl::OkStatus();
}

}  // namespace skein
