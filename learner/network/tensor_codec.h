// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <torch/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "skein/v1/tensor.pb.h"

// torch::Tensor <-> v1::Tensor.
namespace skein {

// Bytes of a dense array of this shape. Nullopt: more than 8 extents, a negative one, or a product that overflows int64
// (zero extents count as one there, so that strides are safe to compute).
std::optional<int64_t> ByteSize(absl::Span<const int64_t> shape, int64_t element_size);

// Copies `tensor` (any device and strides) into `wire`. REQUIRES: dtype float32, float64, int64, int32, uint8 or
// bfloat16.
void EncodeTensor(const std::string& name, const torch::Tensor& tensor, v1::Tensor* wire);

// Checks a tensor, compressed or not, against what it must be, before anything is allocated. A wanted extent of -1
// allows any >= 0.
// InvalidArgument: "field: ..." with got and want.
absl::Status CheckTensor(const v1::Tensor& wire, const std::string& field, torch::ScalarType want_dtype,
                         const std::vector<int64_t>& want_shape);

// A tensor that reads wire.data() in place; `wire` must outlive it and not change.
// InvalidArgument: unknown dtype, bad extent, product overflow, data of another size, or compressed.
absl::StatusOr<torch::Tensor> ViewTensor(const v1::Tensor& wire, const std::string& field);
// The same, as an own copy, decompressed. InvalidArgument as well: the compressed data are damaged. REQUIRES: if it is
// compressed, CheckTensor has been asked for a shape of acceptable size, which is allocated.
absl::StatusOr<torch::Tensor> DecodeTensor(const v1::Tensor& wire, const std::string& field);

}  // namespace skein
