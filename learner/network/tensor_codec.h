// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <torch/types.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "skein/v1/tensor.pb.h"

// torch::Tensor <-> v1::Tensor.
namespace skein {

// nullopt: Torch has no such type.
std::optional<torch::ScalarType> TorchType(v1::DataType dtype);

using NamedTensors = std::vector<std::pair<std::string, torch::Tensor>>;

// Copies `tensor` (any device and strides) into `wire`. REQUIRES: dtype float32, float64, int64, int32, uint8 or
// bfloat16.
void EncodeTensor(const std::string& name, const torch::Tensor& tensor, v1::Tensor* wire);

// A tensor that reads wire.data() in place; `wire` must outlive the tensor and must not change.
// InvalidArgument: unknown dtype, bad extent, product overflow, data of another size, or compressed.
absl::StatusOr<torch::Tensor> ViewTensor(const v1::Tensor& wire, const std::string& field);
// The same as a decompressed copy. InvalidArgument also if the compressed data are damaged. REQUIRES: if `wire` is
// compressed, CheckTensor (policy/tensor_check.h) has accepted its shape, because a tensor of that size is allocated.
absl::StatusOr<torch::Tensor> DecodeTensor(const v1::Tensor& wire, const std::string& field);

// Lists of tensors, for checkpoints. Errors as DecodeTensor; the field is the tensor's name.
std::vector<v1::Tensor> EncodeTensors(const NamedTensors& tensors);
absl::StatusOr<NamedTensors> DecodeTensors(const std::vector<v1::Tensor>& tensors);

}  // namespace skein
