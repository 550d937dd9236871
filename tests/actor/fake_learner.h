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
#include "gtest/gtest.h"
#include "skein/v1/learner_service.grpc.pb.h"
#include "tests/testing/wait_until.h"

namespace skein {

// What a connection's script talks to.
using Stream = grpc::ServerReaderWriter<v1::CollectResponse, v1::CollectRequest>;

// A learner that does what the test says with each connection, numbered from 0.
class FakeLearner final : public v1::Learner::Service {
 public:
  using Script = std::function<grpc::Status(int connection, Stream* stream)>;
  explicit FakeLearner(Script script, int port = 0) : script_(std::move(script)) {
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

  grpc::Status Collect(grpc::ServerContext*, Stream* stream) override { return script_(connections_++, stream); }
  grpc::Status SubscribePolicy(grpc::ServerContext* context, const v1::SubscribePolicyRequest* request,
                               grpc::ServerWriter<v1::PolicySnapshot>* writer) override {
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

inline v1::TrajectoryBatch ReadBatch(Stream* stream) {
  v1::CollectRequest request;
  EXPECT_TRUE(stream->Read(&request) && request.has_batch()) << request.ShortDebugString();
  return request.batch();
}

// Reads until the connection ends.
inline grpc::Status Drain(Stream* stream) {
  v1::CollectRequest request;
  while (stream->Read(&request)) {
  }
  return grpc::Status::OK;
}

}  // namespace skein
