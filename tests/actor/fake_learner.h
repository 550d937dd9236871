// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/net/grpc_transport.h"
#include "grpcpp/impl/rpc_service_method.h"
#include "grpcpp/impl/service_type.h"
#include "grpcpp/support/method_handler.h"
#include "grpcpp/support/slice.h"
#include "gtest/gtest.h"
#include "skein/v1/learner_service.grpc.pb.h"
#include "tests/testing/wait_until.h"
#include "trajectory/frame.h"

namespace skein {

// What a connection's script talks to: the server's side of a Collect stream, whose requests are frames.
class Stream {
 public:
  using Raw = grpc::ServerReaderWriter<v1::CollectResponse, grpc::ByteBuffer>;
  explicit Stream(Raw* raw) : raw_(raw) {}
  // False: there is none. A block of fields is not kept.
  bool Read(v1::CollectRequest* request) {
    grpc::ByteBuffer bytes;
    std::vector<grpc::Slice> slices;
    if (!raw_->Read(&bytes) || !bytes.Dump(&slices).ok()) return false;
    Pieces pieces;
    for (const grpc::Slice& slice : slices) {
      pieces.emplace_back(reinterpret_cast<const char*>(slice.begin()), slice.size());
    }
    const auto frame = ReadFrame(pieces);
    EXPECT_TRUE(frame.ok()) << frame.status();
    if (frame.ok()) *request = frame->header;
    return frame.ok();
  }
  bool Write(const v1::CollectResponse& response) { return raw_->Write(response); }

 private:
  Raw* const raw_;
};

// A learner that does what the test says with each connection, numbered from 0.
class FakeLearner final : public grpc::Service {
 public:
  using Script = std::function<grpc::Status(int connection, Stream* stream)>;
  explicit FakeLearner(Script script, int port = 0) : script_(std::move(script)) {
    // As a generated service does it, with requests as bytes.
    AddMethod(new grpc::internal::RpcServiceMethod(
        "/skein.v1.Learner/Collect", grpc::internal::RpcMethod::BIDI_STREAMING,
        new grpc::internal::BidiStreamingHandler<FakeLearner, grpc::ByteBuffer, v1::CollectResponse>(
            [](FakeLearner* learner, grpc::ServerContext*, Stream::Raw* raw) {
              Stream stream(raw);
              return learner->script_(learner->connections_++, &stream);
            },
            this)));
    AddMethod(new grpc::internal::RpcServiceMethod(
        "/skein.v1.Learner/SubscribePolicy", grpc::internal::RpcMethod::SERVER_STREAMING,
        new grpc::internal::ServerStreamingHandler<FakeLearner, v1::SubscribePolicyRequest, v1::PolicySnapshot>(
            [](FakeLearner* learner, grpc::ServerContext* context, const v1::SubscribePolicyRequest* request,
               grpc::ServerWriter<v1::PolicySnapshot>* writer) {
              return learner->SubscribePolicy(context, request, writer);
            },
            this)));
    absl::StatusOr<std::unique_ptr<grpc::Server>> server;
    WaitUntil([&] {
      server = StartGrpcServer("127.0.0.1:" + std::to_string(port), this, &port_);
      return server.ok();
    });
    server_ = *std::move(server);
  }
  ~FakeLearner() override { server_->Shutdown(std::chrono::system_clock::now()); }

  int port() const { return port_; }
  int connections() const { return connections_; }
  // Answers each subscription: the policies' versions it gets.
  std::function<std::vector<uint64_t>(const v1::SubscribePolicyRequest&)> policies;

  grpc::Status SubscribePolicy(grpc::ServerContext* context, const v1::SubscribePolicyRequest* request,
                               grpc::ServerWriter<v1::PolicySnapshot>* writer) {
    if (policies != nullptr) {
      for (uint64_t version : policies(*request)) {
        v1::PolicySnapshot snapshot;
        snapshot.set_version(version);
        writer->Write(snapshot);
      }
    }
    WaitUntil([&] { return context->IsCancelled(); });
    return grpc::Status::CANCELLED;
  }

 private:
  const Script script_;
  int port_ = 0;
  std::atomic<int> connections_{0};
  std::unique_ptr<grpc::Server> server_;
};

// The words of a script: each reads or sends one message.
inline v1::Hello ReadHello(Stream* stream) {
  v1::CollectRequest request;
  EXPECT_TRUE(stream->Read(&request) && request.has_hello());
  return request.hello();
}

inline void SendWelcome(Stream* stream, uint64_t last_sequence = 0) {
  v1::CollectResponse response;
  response.mutable_welcome()->set_last_sequence(last_sequence);
  stream->Write(response);
}

// Reads the hello and welcomes it.
inline v1::Hello Welcome(Stream* stream, uint64_t last_sequence = 0) {
  v1::Hello hello = ReadHello(stream);
  SendWelcome(stream, last_sequence);
  return hello;
}

inline void SendTicket(Stream* stream, uint64_t id) {
  v1::CollectResponse response;
  response.mutable_ticket()->set_id(id);
  stream->Write(response);
}

inline void SendReceipt(Stream* stream, uint64_t sequence) {
  v1::CollectResponse response;
  response.mutable_receipt()->set_sequence(sequence);
  response.mutable_receipt()->set_result(v1::RECEIPT_RESULT_ACCEPTED);
  stream->Write(response);
}

// Tells that the run is over; the script returns this.
inline grpc::Status Finished(Stream* stream) {
  v1::CollectResponse response;
  response.mutable_finished();
  stream->Write(response);
  return grpc::Status::OK;
}

inline v1::FragmentHeader ReadFragment(Stream* stream) {
  v1::CollectRequest request;
  EXPECT_TRUE(stream->Read(&request) && request.has_fragment()) << request.ShortDebugString();
  return request.fragment();
}

// Reads until the connection ends.
inline grpc::Status Drain(Stream* stream) {
  v1::CollectRequest request;
  while (stream->Read(&request)) {
  }
  return grpc::Status::OK;
}

}  // namespace skein
