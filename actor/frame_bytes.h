// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "grpcpp/support/byte_buffer.h"
#include "skein/v1/learner_service.pb.h"
#include "trajectory/frame.h"

namespace skein {

// The frame of a fragment, made without copying its values: the returned bytes share ownership of its block.
//   Outbox -> FrameBytes -> Collect stream
// Thread-safe.
grpc::ByteBuffer FrameBytes(const Fragment& fragment);

// The frame of a request without a block, i.e. of any but a fragment.
grpc::ByteBuffer FrameBytes(const v1::CollectRequest& request);

}  // namespace skein
