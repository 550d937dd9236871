// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "skein/v1/tensor.pb.h"

// Smaller forms of tensors for the wire.   float32 -> Narrow -> Compress -> wire -> CheckFrame -> Decompress
// Pure, thread-safe; each thread that compresses keeps its buffers, less than a megabyte.
namespace skein {

// Bytes of one element. 0: no such type.
int64_t ElementSize(v1::DataType dtype);
// How many bytes Narrow and Compress made these smaller by. REQUIRES: they were made here, not received.
uint64_t SavedBytes(const google::protobuf::RepeatedPtrField<v1::Tensor>& tensors);

// float32 becomes bfloat16, rounded as ToBfloat16 does. REQUIRES: dtype float32, not compressed.
void Narrow(v1::Tensor* tensor);
// Compresses the data of a large tensor, if that makes them smaller. REQUIRES: not compressed.
void Compress(v1::Tensor* tensor);

// As many bytes as any frame's header has at most.
inline constexpr size_t kFrameHeadBytes = 18;
// Whether a frame that begins with `head` (its first kFrameHeadBytes, or all of it if it is shorter) says that it holds
// `size` bytes. InvalidArgument: it is no frame, says nothing, or another size; the message has both.
absl::Status CheckFrame(absl::Span<const char> head, uint64_t size);
// Writes the `size` bytes of elements in the frame to `to`; another temporary `size` is all that it allocates.
// InvalidArgument: the frame is cut off or damaged, or does not hold exactly `size` bytes. REQUIRES: `size` is trusted,
// and a multiple of the dtype's.
absl::Status Decompress(absl::Span<const char> frame, v1::DataType dtype, size_t size, char* to);

}  // namespace skein
