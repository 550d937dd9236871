// SPDX-License-Identifier: Apache-2.0
#include "learner/network/tensor_codec.h"

#include <torch/types.h>

#include <algorithm>
#include <limits>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/number/tensor_packing.h"

namespace skein {
namespace {

static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__,
              "wire and files are little-endian; bytes are copied as they are");

constexpr size_t kMaxRank = 8;

v1::DataType WireType(torch::ScalarType dtype) {
  switch (dtype) {
    case torch::kFloat32:
      return v1::DATA_TYPE_FLOAT32;
    case torch::kFloat64:
      return v1::DATA_TYPE_FLOAT64;
    case torch::kInt64:
      return v1::DATA_TYPE_INT64;
    case torch::kInt32:
      return v1::DATA_TYPE_INT32;
    case torch::kUInt8:
      return v1::DATA_TYPE_UINT8;
    case torch::kBFloat16:
      return v1::DATA_TYPE_BFLOAT16;
    default:
      return v1::DATA_TYPE_UNSPECIFIED;
  }
}

std::optional<torch::ScalarType> TorchType(v1::DataType dtype) {
  switch (dtype) {
    case v1::DATA_TYPE_FLOAT32:
      return torch::kFloat32;
    case v1::DATA_TYPE_FLOAT64:
      return torch::kFloat64;
    case v1::DATA_TYPE_INT64:
      return torch::kInt64;
    case v1::DATA_TYPE_INT32:
      return torch::kInt32;
    case v1::DATA_TYPE_UINT8:
      return torch::kUInt8;
    case v1::DATA_TYPE_BFLOAT16:
      return torch::kBFloat16;
    default:
      return std::nullopt;
  }
}

std::string TypeName(v1::DataType dtype) {
  return v1::DataType_IsValid(dtype) ? v1::DataType_Name(dtype)
                                     : absl::StrCat("unknown dtype ", static_cast<int>(dtype));
}

// A hostile shape may be as long as the message: show no more of it than a valid one has.
std::string ShapeString(absl::Span<const int64_t> shape) {
  const bool cut = shape.size() > kMaxRank;
  return absl::StrCat("[", absl::StrJoin(shape.first(std::min(shape.size(), kMaxRank)), ", "), cut ? ", ..." : "", "]");
}

// The dtype, if the wire tensor is consistent in itself.
absl::StatusOr<torch::ScalarType> CheckConsistent(const v1::Tensor& wire, const std::string& field) {
  const std::optional<torch::ScalarType> dtype = TorchType(wire.dtype());
  if (!dtype) {
    return absl::InvalidArgumentError(absl::StrCat(field, ": got ", TypeName(wire.dtype()), ", want a known dtype"));
  }
  const int64_t element_size = c10::elementSize(*dtype);
  const std::optional<int64_t> bytes = ByteSize(wire.shape(), element_size);
  if (!bytes) {
    return absl::InvalidArgumentError(absl::StrCat(field, ": bad shape ", ShapeString(wire.shape()),
                                                   ", want at most 8 extents, each >= 0, of a possible product"));
  }
  if (wire.compression() == v1::COMPRESSION_ZSTD) {
    const absl::Status frame =
        CheckFrame(absl::Span<const char>(wire.data()).first(std::min(wire.data().size(), kFrameHeadBytes)),
                   static_cast<uint64_t>(*bytes));
    if (!frame.ok()) return absl::InvalidArgumentError(absl::StrCat(field, ": ", std::string(frame.message())));
    return *dtype;
  }
  if (wire.compression() != v1::COMPRESSION_UNSPECIFIED && wire.compression() != v1::COMPRESSION_NONE) {
    return absl::InvalidArgumentError(
        absl::StrCat(field, ": got compression ", static_cast<int>(wire.compression()), ", want none or zstd"));
  }
  if (wire.data().size() != static_cast<uint64_t>(*bytes)) {
    return absl::InvalidArgumentError(absl::StrCat(field, ": got ", wire.data().size(), " bytes, want ", *bytes,
                                                   " for ", TypeName(wire.dtype()), " ", ShapeString(wire.shape())));
  }
  return *dtype;
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

void EncodeTensor(const std::string& name, const torch::Tensor& tensor, v1::Tensor* wire) {
  const v1::DataType dtype = WireType(tensor.scalar_type());
  TORCH_CHECK(dtype != v1::DATA_TYPE_UNSPECIFIED, name, ": dtype ", tensor.scalar_type(), " has no wire form");
  const torch::Tensor dense = tensor.detach().cpu().contiguous();
  wire->set_name(name);
  wire->set_dtype(dtype);
  wire->mutable_shape()->Assign(dense.sizes().begin(), dense.sizes().end());
  wire->mutable_data()->assign(static_cast<const char*>(dense.data_ptr()), dense.nbytes());
}

absl::Status CheckTensor(const v1::Tensor& wire, const std::string& field, torch::ScalarType want_dtype,
                         const std::vector<int64_t>& want_shape) {
  if (wire.dtype() != WireType(want_dtype)) {
    return absl::InvalidArgumentError(
        absl::StrCat(field, ": got ", TypeName(wire.dtype()), ", want ", TypeName(WireType(want_dtype))));
  }
  const bool matches = std::equal(wire.shape().begin(), wire.shape().end(), want_shape.begin(), want_shape.end(),
                                  [](int64_t got, int64_t want) { return want == -1 ? got >= 0 : got == want; });
  if (!matches) {
    return absl::InvalidArgumentError(
        absl::StrCat(field, ": got shape ", ShapeString(wire.shape()), ", want ", ShapeString(want_shape)));
  }
  return CheckConsistent(wire, field).status();
}

absl::StatusOr<torch::Tensor> ViewTensor(const v1::Tensor& wire, const std::string& field) {
  const absl::StatusOr<torch::ScalarType> dtype = CheckConsistent(wire, field);
  if (!dtype.ok()) return dtype.status();
  if (wire.compression() == v1::COMPRESSION_ZSTD) {
    return absl::InvalidArgumentError(absl::StrCat(field, ": is compressed and cannot be read in place"));
  }
  // Torch has no read-only tensors.
  void* data = const_cast<char*>(wire.data().data());
  return torch::from_blob(data, at::IntArrayRef(wire.shape().data(), wire.shape().size()), *dtype);
}

absl::StatusOr<torch::Tensor> DecodeTensor(const v1::Tensor& wire, const std::string& field) {
  if (wire.compression() != v1::COMPRESSION_ZSTD) {
    absl::StatusOr<torch::Tensor> view = ViewTensor(wire, field);
    if (!view.ok()) return view.status();
    return view->clone();
  }
  const absl::StatusOr<torch::ScalarType> dtype = CheckConsistent(wire, field);
  if (!dtype.ok()) return dtype.status();
  torch::Tensor tensor = torch::empty(at::IntArrayRef(wire.shape().data(), wire.shape().size()), *dtype);
  const absl::Status status =
      Decompress(wire.data(), wire.dtype(), tensor.nbytes(), static_cast<char*>(tensor.data_ptr()));
  if (!status.ok()) return absl::InvalidArgumentError(absl::StrCat(field, ": ", std::string(status.message())));
  return tensor;
}

}  // namespace skein
