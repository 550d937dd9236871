// SPDX-License-Identifier: Apache-2.0
// What the tests of the learner's service share.
#pragma once

#include <chrono>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "base/net/grpc_transport.h"
#include "grpcpp/client_context.h"
#include "gtest/gtest.h"
#include "learner/collect/service.h"
#include "prometheus/registry.h"
#include "tests/learner/connections.h"
#include "tests/learner/sample_fragment.h"
#include "tests/testing/collect_stream.h"

namespace skein {

// An actor that does what the test says, over a real connection of its own. Reads end the test's wait after 20 s.
class ScriptedActor {
 public:
  ScriptedActor(int port, const std::string& id, uint32_t runners = 1)
      : channel_(OpenChannel("127.0.0.1:" + std::to_string(port))), stub_(v1::Learner::NewStub(channel_)) {
    hello_.set_protocol_major(kProtocolMajor);
    hello_.set_run_id("run");
    hello_.set_actor_id(id);
    hello_.set_generation(1);
    hello_.set_ticket_credits(runners);
    hello_.set_runners(runners);
    *hello_.mutable_env_spec() = MakeSampleShape({}).spec;
    Connect();
  }
  ~ScriptedActor() { Break(); }

  void Connect() {
    context_ = std::make_unique<grpc::ClientContext>();
    context_->set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(20));
    stream_ = OpenCollect(channel_, context_.get());
  }
  // The policies that the learner sends, over the same connection.
  struct Subscription {
    grpc::ClientContext context;
    std::unique_ptr<grpc::ClientReader<v1::PolicySnapshot>> reader;
    // Version of the next policy; 0 = the stream ended.
    uint64_t Next() {
      v1::PolicySnapshot snapshot;
      return reader->Read(&snapshot) ? snapshot.version() : 0;
    }
    grpc::Status End() {
      EXPECT_EQ(Next(), 0u);
      return reader->Finish();
    }
  };
  std::unique_ptr<Subscription> Subscribe(uint64_t newest_version = 0, const std::string& run_id = "run") {
    auto subscription = std::make_unique<Subscription>();
    subscription->context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(20));
    v1::SubscribePolicyRequest request;
    request.set_run_id(run_id);
    request.set_actor_id(hello_.actor_id());
    request.set_generation(hello_.generation());
    request.set_newest_version(newest_version);
    subscription->reader = stub_->SubscribePolicy(&subscription->context, request);
    return subscription;
  }
  void Break() {
    if (stream_ == nullptr) return;
    context_->TryCancel();
    v1::CollectResponse response;
    while (stream_->Read(&response)) {
    }
    stream_->Finish();
    stream_.reset();
  }

  v1::Hello* hello() { return &hello_; }
  void Send(const v1::CollectRequest& request) { WriteFrame(stream_.get(), request); }
  void SendBytes(const std::string& bytes) { WriteBytes(stream_.get(), bytes); }
  void SendHello() {
    v1::CollectRequest request;
    *request.mutable_hello() = hello_;
    Send(request);
  }
  // A ticket that comes beside something else is handed out after it.
  v1::CollectResponse Read() {
    v1::CollectResponse response;
    if (ticket_) {
      *response.mutable_ticket() = *std::exchange(ticket_, std::nullopt);
      return response;
    }
    EXPECT_TRUE(stream_->Read(&response)) << hello_.actor_id() << ": the stream ended";
    if (response.has_ticket() && response.message_case() != v1::CollectResponse::MESSAGE_NOT_SET) {
      ticket_ = response.ticket();
      response.clear_ticket();
    }
    return response;
  }
  v1::Ticket ReadTicket() {
    v1::CollectResponse response = Read();
    EXPECT_TRUE(response.has_ticket()) << response.ShortDebugString();
    return response.ticket();
  }
  v1::Receipt ReadReceipt() {
    v1::CollectResponse response = Read();
    EXPECT_TRUE(response.has_receipt()) << response.ShortDebugString();
    return response.receipt();
  }
  // Hello, and the welcome's last sequence.
  uint64_t Join() {
    SendHello();
    v1::CollectResponse response = Read();
    EXPECT_TRUE(response.has_welcome()) << response.ShortDebugString();
    return response.welcome().last_sequence();
  }
  void SendFragment(const v1::Ticket& ticket, bool finite = true) {
    SampleFragment fragment = MakeSampleFragment(MakeSampleShape({}));
    fragment.header.set_ticket_id(ticket.id());
    fragment.header.set_first_env(ticket.first_env());
    fragment.header.set_policy_version(ticket.policy_version());
    fragment.header.set_sequence(++sequence_);
    collected_ += kFragmentSteps;
    fragment.header.set_env_steps_collected(collected_);
    if (!finite) SetElement(fragment.Find("obs"), 0, std::numeric_limits<float>::infinity());
    SendBytes(fragment.Bytes());
  }
  void SendGoodbye() {
    v1::CollectRequest request;
    request.mutable_goodbye()->set_env_steps_collected(collected_);
    Send(request);
    stream_->WritesDone();
  }
  // What the stream ended with; it must have nothing more to say.
  grpc::Status End() {
    v1::CollectResponse response;
    EXPECT_FALSE(ticket_) << ticket_->ShortDebugString();
    EXPECT_FALSE(stream_->Read(&response)) << response.ShortDebugString();
    const grpc::Status status = stream_->Finish();
    stream_.reset();
    return status;
  }

 private:
  const std::shared_ptr<grpc::Channel> channel_;
  std::unique_ptr<v1::Learner::Stub> stub_;
  std::unique_ptr<grpc::ClientContext> context_;
  std::unique_ptr<CollectStream> stream_;
  v1::Hello hello_;
  std::optional<v1::Ticket> ticket_;  // Read, but not handed out yet.
  uint64_t sequence_ = 0, collected_ = 0;
};

// The service on a loopback socket, with four environments in two groups.
class LearnerServiceTest : public testing::Test {
 protected:
  LearnerServiceTest() {
    Collector::Options options;
    options.run_id = "run";
    options.shape = MakeSampleShape({});
    options.share_envs = 4;
    collector_ = std::make_unique<Collector>(options, &metrics_);
    server_ = *StartGrpcServer("127.0.0.1:0", &service_, &port_);
  }
  ~LearnerServiceTest() override { server_->Shutdown(std::chrono::system_clock::now()); }

  void Serve() { service_.Serve("run", collector_.get(), &publisher_, absl::Seconds(5)); }
  void Publish(uint64_t version, size_t bytes = 16) {
    auto snapshot = std::make_shared<v1::PolicySnapshot>();
    snapshot->set_version(version);
    snapshot->add_tensors()->set_data(std::string(bytes, 'w'));
    publisher_.Publish(std::move(snapshot));
  }
  void OpenIteration(uint64_t version) {
    collector_->OpenIteration(version);
    service_.SendGrants();
  }

  prometheus::Registry registry_;
  LearnerMetrics metrics_{&registry_};
  PolicyPublisher publisher_{&metrics_};
  std::unique_ptr<Collector> collector_;
  LearnerService service_;
  int port_ = 0;
  std::unique_ptr<grpc::Server> server_;
};

}  // namespace skein
