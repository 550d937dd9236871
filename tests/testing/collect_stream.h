// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>

#include "grpcpp/channel.h"
#include "grpcpp/client_context.h"
#include "grpcpp/impl/codegen/rpc_method.h"
#include "grpcpp/support/byte_buffer.h"
#include "grpcpp/support/slice.h"
#include "grpcpp/support/sync_stream.h"
#include "skein/v1/learner_service.pb.h"
#include "trajectory/frame.h"

namespace skein {

inline constexpr char kCollectMethod[] = "/skein.v1.Learner/Collect";

// The client's side of a Collect stream, with requests as bytes: generated stubs send no frames.
using CollectStream = grpc::ClientReaderWriter<grpc::ByteBuffer, v1::CollectResponse>;

inline std::unique_ptr<CollectStream> OpenCollect(const std::shared_ptr<grpc::Channel>& channel,
                                                  grpc::ClientContext* context) {
  const grpc::internal::RpcMethod method(kCollectMethod, grpc::internal::RpcMethod::BIDI_STREAMING, channel);
  return std::unique_ptr<CollectStream>(
      grpc::internal::ClientReaderWriterFactory<grpc::ByteBuffer, v1::CollectResponse>::Create(channel.get(), method,
                                                                                               context));
}

inline bool WriteBytes(CollectStream* stream, const std::string& bytes) {
  const grpc::Slice slice(bytes);
  return stream->Write(grpc::ByteBuffer(&slice, 1));
}

inline bool WriteFrame(CollectStream* stream, const v1::CollectRequest& request) {
  return WriteBytes(stream, FrameHead(request));
}

}  // namespace skein
