// SPDX-License-Identifier: Apache-2.0
#include "policy/tensor_check.h"

#include <algorithm>
#include <cstring>
#include <limits>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/number/bfloat16.h"
#include "base/number/tensor_packing.h"

namespace skein {
namespace {

static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__,
              "wire and files are little-endian; bytes are copied as they are");

constexpr size_t kMaxRank = 8;

std::string TypeName(v1::DataType dtype) {
  return v1::DataType_IsValid(dtype) ? v1::DataType_Name(dtype)
                                     : absl::StrCat("unknown dtype ", static_cast<int>(dtype));
}

// A hostile shape may be as long as the message: show no more of it than a valid one has.
std::string ShapeString(absl::Span<const int64_t> shape) {
  const bool cut = shape.size() > kMaxRank;
  return absl::StrCat("[", absl::StrJoin(shape.first(std::min(shape.size(), kMaxRank)), ", "), cut ? ", ..." : "", "]");
}

}  // namespace

std::optional<int64_t> ByteSize(absl::Span<const int64_t> shape, int64_t element_size) {
  if (shape.size() > kMaxRank) return std::nullopt;
  int64_t bytes = element_size;
  bool empty = false;
  for (const int64_t extent : shape) {
    if (extent < 0) return std::nullopt;
    if (extent == 0) {
      empty = true;
      continue;
    }
    if (bytes > std::numeric_limits<int64_t>::max() / extent) return std::nullopt;
    bytes *= extent;
  }
  return empty ? 0 : bytes;
}

absl::Status CheckConsistent(const v1::Tensor& tensor, const std::string& field) {
  const int64_t element_size = ElementSize(tensor.dtype());
  if (element_size == 0) {
    return absl::InvalidArgumentError(absl::StrCat(field, ": got ", TypeName(tensor.dtype()), ", want a known dtype"));
  }
  const std::optional<int64_t> bytes = ByteSize(tensor.shape(), element_size);
  if (!bytes) {
    return absl::InvalidArgumentError(absl::StrCat(field, ": bad shape ", ShapeString(tensor.shape()),
                                                   ", want at most 8 extents, each >= 0, of a possible product"));
  }
  if (tensor.compression() == v1::COMPRESSION_ZSTD) {
    const absl::Status frame =
        CheckFrame(absl::Span<const char>(tensor.data()).first(std::min(tensor.data().size(), kFrameHeadBytes)),
                   static_cast<uint64_t>(*bytes));
    if (!frame.ok()) return absl::InvalidArgumentError(absl::StrCat(field, ": ", std::string(frame.message())));
    return absl::OkStatus();
  }
  if (tensor.compression() != v1::COMPRESSION_UNSPECIFIED && tensor.compression() != v1::COMPRESSION_NONE) {
    return absl::InvalidArgumentError(
        absl::StrCat(field, ": got compression ", static_cast<int>(tensor.compression()), ", want none or zstd"));
  }
  if (tensor.data().size() != static_cast<uint64_t>(*bytes)) {
    return absl::InvalidArgumentError(absl::StrCat(field, ": got ", tensor.data().size(), " bytes, want ", *bytes,
                                                   " for ", TypeName(tensor.dtype()), " ",
                                                   ShapeString(tensor.shape())));
  }
  return absl::OkStatus();
}

absl::Status CheckTensor(const v1::Tensor& tensor, const std::string& field, v1::DataType want_dtype,
                         absl::Span<const int64_t> want_shape) {
  if (tensor.dtype() != want_dtype) {
    return absl::InvalidArgumentError(
        absl::StrCat(field, ": got ", TypeName(tensor.dtype()), ", want ", TypeName(want_dtype)));
  }
  const bool matches = std::equal(tensor.shape().begin(), tensor.shape().end(), want_shape.begin(), want_shape.end(),
                                  [](int64_t got, int64_t want) { return want == -1 ? got >= 0 : got == want; });
  if (!matches) {
    return absl::InvalidArgumentError(
        absl::StrCat(field, ": got shape ", ShapeString(tensor.shape()), ", want ", ShapeString(want_shape)));
  }
  return CheckConsistent(tensor, field);
}

absl::StatusOr<std::vector<float>> DecodeFloats(const v1::Tensor& tensor, const std::string& field) {
  const auto element_size = static_cast<size_t>(ElementSize(tensor.dtype()));
  size_t count = 1;
  for (const int64_t extent : tensor.shape()) count *= static_cast<size_t>(extent);
  std::string decompressed;
  const std::string* data = &tensor.data();
  if (tensor.compression() == v1::COMPRESSION_ZSTD) {
    decompressed.resize(count * element_size);
    const absl::Status status = Decompress(tensor.data(), tensor.dtype(), decompressed.size(), decompressed.data());
    if (!status.ok()) return absl::InvalidArgumentError(absl::StrCat(field, ": ", std::string(status.message())));
    data = &decompressed;
  }
  std::vector<float> values(count);
  if (count == 0) return values;
  if (tensor.dtype() == v1::DATA_TYPE_BFLOAT16) {
    std::vector<uint16_t> narrow(count);
    std::memcpy(narrow.data(), data->data(), count * element_size);
    FromBfloat16(narrow.data(), count, values.data());
  } else {
    std::memcpy(values.data(), data->data(), count * element_size);
  }
  return values;
}

}  // namespace skein
