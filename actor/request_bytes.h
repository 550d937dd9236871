// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "grpcpp/support/byte_buffer.h"
#include "skein/v1/learner_service.pb.h"

namespace skein {

// The wire form of a batch without a copy of its tensors: the bytes returned share `request`'s memory and keep it.
//   Outbox -> BatchBytes -> Collect stream
// Thread-safe. REQUIRES: request->has_batch(); it does not change any more.
grpc::ByteBuffer BatchBytes(std::shared_ptr<const v1::CollectRequest> request);

// The wire form of any request, copied.
grpc::ByteBuffer RequestBytes(const v1::CollectRequest& request);

}  // namespace skein
