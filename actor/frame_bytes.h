// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "grpcpp/support/byte_buffer.h"
#include "skein/v1/learner_service.pb.h"
#include "trajectory/frame.h"

namespace skein {

// A fragment's frame without a copy of its values: the bytes returned share its block and keep it.
//   Outbox -> FrameBytes -> Collect stream
// Thread-safe.
grpc::ByteBuffer FrameBytes(const Fragment& fragment);

// The frame of a request that has no block, i.e. of any but a batch.
grpc::ByteBuffer FrameBytes(const v1::CollectRequest& request);

}  // namespace skein
