// SPDX-License-Identifier: Apache-2.0
#include "learner/network/tensor_codec.h"

#include <torch/types.h>

#include <optional>

#include "absl/strings/str_cat.h"
#include "base/number/tensor_packing.h"
#include "policy/tensor_check.h"

namespace skein {
namespace {

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

}  // namespace

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

void EncodeTensor(const std::string& name, const torch::Tensor& tensor, v1::Tensor* wire) {
  const v1::DataType dtype = WireType(tensor.scalar_type());
  TORCH_CHECK(dtype != v1::DATA_TYPE_UNSPECIFIED, name, ": dtype ", tensor.scalar_type(), " has no wire form");
  const torch::Tensor dense = tensor.detach().cpu().contiguous();
  wire->set_name(name);
  wire->set_dtype(dtype);
  wire->mutable_shape()->Assign(dense.sizes().begin(), dense.sizes().end());
  wire->mutable_data()->assign(static_cast<const char*>(dense.data_ptr()), dense.nbytes());
}

absl::StatusOr<torch::Tensor> ViewTensor(const v1::Tensor& wire, const std::string& field) {
  if (absl::Status status = CheckConsistent(wire, field); !status.ok()) return status;
  if (wire.compression() == v1::COMPRESSION_ZSTD) {
    return absl::InvalidArgumentError(absl::StrCat(field, ": is compressed and cannot be read in place"));
  }
  // Torch has no read-only tensors.
  void* data = const_cast<char*>(wire.data().data());
  return torch::from_blob(data, at::IntArrayRef(wire.shape().data(), wire.shape().size()), *TorchType(wire.dtype()));
}

absl::StatusOr<torch::Tensor> DecodeTensor(const v1::Tensor& wire, const std::string& field) {
  if (wire.compression() != v1::COMPRESSION_ZSTD) {
    absl::StatusOr<torch::Tensor> view = ViewTensor(wire, field);
    if (!view.ok()) return view.status();
    return view->clone();
  }
  if (absl::Status status = CheckConsistent(wire, field); !status.ok()) return status;
  torch::Tensor tensor =
      torch::empty(at::IntArrayRef(wire.shape().data(), wire.shape().size()), *TorchType(wire.dtype()));
  const absl::Status status =
      Decompress(wire.data(), wire.dtype(), tensor.nbytes(), static_cast<char*>(tensor.data_ptr()));
  if (!status.ok()) return absl::InvalidArgumentError(absl::StrCat(field, ": ", std::string(status.message())));
  return tensor;
}

std::vector<v1::Tensor> EncodeTensors(const NamedTensors& tensors) {
  std::vector<v1::Tensor> encoded(tensors.size());
  for (size_t i = 0; i < tensors.size(); ++i) EncodeTensor(tensors[i].first, tensors[i].second, &encoded[i]);
  return encoded;
}

absl::StatusOr<NamedTensors> DecodeTensors(const std::vector<v1::Tensor>& tensors) {
  NamedTensors decoded;
  for (const v1::Tensor& tensor : tensors) {
    absl::StatusOr<torch::Tensor> values = DecodeTensor(tensor, tensor.name());
    if (!values.ok()) return values.status();
    decoded.emplace_back(tensor.name(), *std::move(values));
  }
  return decoded;
}

}  // namespace skein
