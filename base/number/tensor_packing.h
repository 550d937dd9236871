// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "skein/v1/tensor.pb.h"

// Reduces the size of tensors on the wire.   float32 -> Narrow -> Compress -> wire -> CheckFrame -> Decompress
// Pure, thread-safe; each thread that compresses keeps buffers of less than a megabyte.
namespace skein {

// Bytes of one element. 0: no such type.
int64_t ElementSize(v1::DataType dtype);
// Bytes that Narrow and Compress saved on these tensors. REQUIRES: this process made them; they were not received.
uint64_t SavedBytes(const google::protobuf::RepeatedPtrField<v1::Tensor>& tensors);

// Converts float32 to bfloat16, rounded as by ToBfloat16. REQUIRES: dtype float32, not compressed.
void Narrow(v1::Tensor* tensor);
// Compresses the data of a large tensor if this makes them smaller. REQUIRES: not compressed.
void Compress(v1::Tensor* tensor);

// Maximum size of a frame's header in bytes.
inline constexpr size_t kFrameHeadBytes = 18;
// Checks that the header of a frame declares `size` bytes of content. `head`: the frame's first kFrameHeadBytes, or all
// of a shorter frame. InvalidArgument: not a frame, or no or another declared size; the message has both sizes.
absl::Status CheckFrame(absl::Span<const char> head, uint64_t size);
// Writes the `size` bytes of elements in the frame to `to`; it allocates at most `size` temporary bytes.
// InvalidArgument: the frame is truncated or damaged, or does not contain exactly `size` bytes. REQUIRES: `size` is
// trusted, and a multiple of the dtype's size.
absl::Status Decompress(absl::Span<const char> frame, v1::DataType dtype, size_t size, char* to);

}  // namespace skein
