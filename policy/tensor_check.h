// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "skein/v1/tensor.pb.h"

// Checks of received tensors, made before anything is allocated from the sizes that they declare. Pure.
namespace skein {

// Bytes of a dense array of this shape. Nullopt: more than 8 extents, a negative one, or a product that overflows int64
// (zero extents count as one there, so that strides are safe to compute).
std::optional<int64_t> ByteSize(absl::Span<const int64_t> shape, int64_t element_size);

// Checks that a tensor, compressed or not, is consistent in itself.
// InvalidArgument: unknown dtype or compression, bad extent, product overflow, data of another size; the message begins
// with "field: " and gives the actual and the wanted value.
absl::Status CheckConsistent(const v1::Tensor& tensor, const std::string& field);

// Also checks its type and shape. A wanted extent of -1 allows any >= 0. Errors as CheckConsistent.
absl::Status CheckTensor(const v1::Tensor& tensor, const std::string& field, v1::DataType want_dtype,
                         absl::Span<const int64_t> want_shape);

// The values of a float32 or bfloat16 tensor, decompressed. InvalidArgument: the compressed data are damaged.
// REQUIRES: CheckTensor has accepted it, with a shape that is small enough to allocate.
absl::StatusOr<std::vector<float>> DecodeFloats(const v1::Tensor& tensor, const std::string& field);

}  // namespace skein
