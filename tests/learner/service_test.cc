// SPDX-License-Identifier: Apache-2.0
#include "learner/service.h"

#include <chrono>
#include <limits>
#include <thread>

#include "base/clock.h"
#include "base/grpc_transport.h"
#include "gmock/gmock.h"
#include "grpcpp/client_context.h"
#include "gtest/gtest.h"
#include "tests/base/health_check.h"
#include "tests/learner/sample_batch.h"
#include "tests/testing/wait_until.h"

namespace skein {
namespace {

using testing::HasSubstr;

constexpr uint64_t kBlockSteps = 4;  // T=2 x E=2.

// An actor that does what the test says, over a real connection. Reads end the test's wait after 20 s.
class ScriptedActor {
 public:
  ScriptedActor(int port, const std::string& id, uint32_t runners = 1)
      : stub_(v1::Learner::NewStub(OpenChannel("127.0.0.1:" + std::to_string(port)))) {
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
    stream_ = stub_->Collect(context_.get());
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
  void Send(const v1::CollectRequest& request) { stream_->Write(request); }
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
  void SendBatch(const v1::Ticket& ticket, bool finite = true) {
    v1::CollectRequest request;
    v1::TrajectoryBatch& batch = *request.mutable_batch();
    batch = MakeSampleBatch(MakeSampleShape({}));
    batch.set_ticket_id(ticket.id());
    batch.set_first_env(ticket.first_env());
    batch.set_policy_version(ticket.policy_version());
    batch.set_sequence(++sequence_);
    collected_ += kBlockSteps;
    batch.set_env_steps_collected(collected_);
    if (!finite) SetElement(FindTensor(&batch, "obs"), 0, std::numeric_limits<float>::infinity());
    Send(request);
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
  std::unique_ptr<v1::Learner::Stub> stub_;
  std::unique_ptr<grpc::ClientContext> context_;
  std::unique_ptr<grpc::ClientReaderWriter<v1::CollectRequest, v1::CollectResponse>> stream_;
  v1::Hello hello_;
  std::optional<v1::Ticket> ticket_;  // Read, but not handed out yet.
  uint64_t sequence_ = 0, collected_ = 0;
};

// The service on a loopback socket, with four environments in two blocks.
class LearnerServiceTest : public testing::Test {
 protected:
  LearnerServiceTest() {
    Collector::Options options;
    options.run_id = "run";
    options.shape = MakeSampleShape({});
    options.num_envs = 4;
    collector_ = std::make_unique<Collector>(options, &metrics_);
    server_ = *StartGrpcServer("127.0.0.1:0", &service_, &port_);
  }
  ~LearnerServiceTest() override { server_->Shutdown(std::chrono::system_clock::now()); }

  void Serve() { service_.Serve("run", collector_.get(), &publisher_); }
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

TEST_F(LearnerServiceTest, IsUnavailableUntilItServes) {
  ScriptedActor actor(port_, "ada");
  EXPECT_EQ(actor.End().error_code(), grpc::StatusCode::UNAVAILABLE);
  auto stub = v1::Learner::NewStub(OpenChannel("127.0.0.1:" + std::to_string(port_)));
  grpc::ClientContext context;
  auto reader = stub->SubscribePolicy(&context, v1::SubscribePolicyRequest());
  v1::PolicySnapshot snapshot;
  EXPECT_FALSE(reader->Read(&snapshot));
  EXPECT_EQ(reader->Finish().error_code(), grpc::StatusCode::UNAVAILABLE);
  Serve();
  actor.Connect();
  EXPECT_EQ(actor.Join(), 0u);
}

TEST_F(LearnerServiceTest, IsReadyWhileItServes) {
  service_.OnServing([this](bool serving) { SetReady(server_.get(), serving); });
  EXPECT_EQ(CheckHealth(port_, kReadiness), "NOT_SERVING");
  Serve();
  EXPECT_EQ(CheckHealth(port_, kReadiness), "SERVING");
  service_.Finish();
  EXPECT_EQ(CheckHealth(port_, kReadiness), "NOT_SERVING");
  EXPECT_EQ(CheckHealth(port_, ""), "SERVING");
}

TEST_F(LearnerServiceTest, WantsHelloFirstAndOnce) {
  Serve();
  ScriptedActor rude(port_, "ada");
  rude.SendBatch(v1::Ticket());
  EXPECT_EQ(rude.End().error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  ScriptedActor empty(port_, "bob");
  empty.Join();
  empty.Send(v1::CollectRequest());
  EXPECT_EQ(empty.End().error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  ScriptedActor twice(port_, "cora");
  twice.Join();
  twice.SendHello();
  const grpc::Status status = twice.End();
  EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(status.error_message(), "hello came twice");
}

TEST_F(LearnerServiceTest, RefusesAnotherRunAndAClosedLife) {
  Serve();
  ScriptedActor stranger(port_, "ada");
  stranger.hello()->set_run_id("other");
  stranger.SendHello();
  const grpc::Status status = stranger.End();
  EXPECT_EQ(status.error_code(), grpc::StatusCode::FAILED_PRECONDITION);
  EXPECT_THAT(status.error_message(), HasSubstr("run other"));
  ScriptedActor departed(port_, "bob");
  departed.Join();
  departed.SendGoodbye();
  EXPECT_TRUE(departed.End().ok());
  departed.Connect();
  departed.SendHello();
  EXPECT_EQ(departed.End().error_code(), grpc::StatusCode::ABORTED);
}

v1::StatusResponse StatusOf(const std::vector<ActorKey>& members) {
  v1::StatusResponse status;
  for (const ActorKey& member : members) {
    v1::MemberStatus* one = status.add_members();
    one->set_role("actor");
    one->set_member_id(member.actor_id);
    one->set_generation(member.generation);
  }
  return status;
}

TEST_F(LearnerServiceTest, WhoIsNoMemberIsSentAwayOnceTheCoordinatorHasSaidSo) {
  Serve();
  EXPECT_FALSE(service_.HasNewcomers());
  ScriptedActor ada(port_, "ada"), bob(port_, "bob"), cora(port_, "cora");
  cora.hello()->set_generation(3);
  ada.Join();
  bob.Join();
  cora.Join();
  EXPECT_TRUE(service_.HasNewcomers());
  service_.Confirm(StatusOf({}), MonotonicNow() - absl::Minutes(1));  // As it was before they came.
  EXPECT_EQ(collector_->actors(), 3);
  // Cora has left a learner twice, and counts each stay.
  service_.Confirm(StatusOf({{"ada", 1}, {"cora", 1}}), MonotonicNow());
  EXPECT_FALSE(service_.HasNewcomers());
  EXPECT_EQ(bob.End().error_code(), grpc::StatusCode::ABORTED);
  bob.Connect();
  bob.SendHello();
  EXPECT_EQ(bob.End().error_code(), grpc::StatusCode::ABORTED);
  // A lease that ends, or a coordinator that has lost its state, does not cost a member its stream.
  ada.Break();
  WaitUntil([&] { return collector_->actors() == 1; });
  ada.Connect();
  ada.Join();
  service_.Confirm(StatusOf({}), MonotonicNow());
  OpenIteration(1);
  ada.ReadTicket();
  cora.ReadTicket();
}

TEST_F(LearnerServiceTest, AGenerationBeforeTheMembersOrFarBeyondItIsNotItsOwn) {
  Serve();
  ScriptedActor before(port_, "ada"), after(port_, "ada");
  before.hello()->set_generation(6);
  after.hello()->set_generation(7 + (uint64_t{1} << 20));
  before.Join();
  after.Join();
  service_.Confirm(StatusOf({{"ada", 7}}), MonotonicNow());
  EXPECT_EQ(before.End().error_code(), grpc::StatusCode::ABORTED);
  EXPECT_EQ(after.End().error_code(), grpc::StatusCode::ABORTED);
}

TEST_F(LearnerServiceTest, OnlyALifeThatIsNoMembersAnyMoreIsClosedByAnother) {
  Serve();
  OpenIteration(1);
  ScriptedActor ada(port_, "ada");
  ada.Join();
  const v1::Ticket ticket = ada.ReadTicket();
  ScriptedActor mallory(port_, "mallory"), cora(port_, "cora");
  for (ScriptedActor* other : {&mallory, &cora}) {
    other->hello()->set_previous_actor_id("ada");
    other->hello()->set_previous_generation(1);
    other->hello()->set_previous_env_steps_collected(5 * kBlockSteps);
  }
  mallory.Join();
  service_.Confirm(StatusOf({{"ada", 1}, {"mallory", 1}}), MonotonicNow());
  EXPECT_EQ(collector_->account().lost(), 0u);
  EXPECT_EQ(collector_->actors(), 2);
  ada.SendBatch(ticket);
  EXPECT_EQ(ada.ReadReceipt().result(), v1::RECEIPT_RESULT_ACCEPTED);
  // Ada's lease has ended, and it has joined again as cora.
  cora.Join();
  EXPECT_EQ(collector_->account().lost(), 0u);
  service_.Confirm(StatusOf({{"cora", 1}, {"mallory", 1}}), MonotonicNow());
  EXPECT_EQ(collector_->account().lost(), 4 * kBlockSteps);
}

TEST_F(LearnerServiceTest, WhatAMemberSaysOfItsLifeBeforeCountsAlsoIfBothAreNew) {
  Serve();
  ScriptedActor ada(port_, "ada"), cora(port_, "cora");
  ada.Join();
  cora.hello()->set_previous_actor_id("ada");
  cora.hello()->set_previous_generation(1);
  cora.hello()->set_previous_env_steps_collected(5 * kBlockSteps);
  cora.Join();
  service_.Confirm(StatusOf({{"cora", 1}}), MonotonicNow());
  EXPECT_EQ(collector_->account().lost(), 5 * kBlockSteps);
}

TEST_F(LearnerServiceTest, ANewStayOfAMemberClosesItsLastOneAtOnce) {
  Serve();
  ScriptedActor before(port_, "ada"), now(port_, "ada");
  before.Join();
  now.hello()->set_generation(2);
  now.hello()->set_previous_actor_id("ada");
  now.hello()->set_previous_generation(1);
  now.hello()->set_previous_env_steps_collected(kBlockSteps);
  now.Join();
  EXPECT_EQ(collector_->account().lost(), kBlockSteps);
}

TEST_F(LearnerServiceTest, OneConnectionOpensStreamsSoOftenAndNoMore) {
  Serve();
  ScriptedActor ada(port_, "ada"), bob(port_, "bob");
  ada.Break();
  int refused = 0;
  // A hundred a second are allowed: more come in one, unless this machine needs 10 ms for each.
  for (int i = 0; i < 2000 && refused == 0; ++i) {
    ada.Connect();
    ada.SendGoodbye();
    refused += ada.End().error_code() == grpc::StatusCode::RESOURCE_EXHAUSTED;
  }
  EXPECT_EQ(refused, 1);
  bob.Join();
}

TEST_F(LearnerServiceTest, ServesAnIterationWithReceiptsInOrder) {
  Serve();
  collector_->OpenIteration(1);
  ScriptedActor ada(port_, "ada", 2);
  ada.Join();  // Tickets that are open already follow the welcome.
  const v1::Ticket first = ada.ReadTicket(), second = ada.ReadTicket();
  EXPECT_EQ(first.first_env(), 0u);
  EXPECT_EQ(second.first_env(), 2u);
  ada.SendBatch(second);
  ada.SendBatch(second);
  ada.SendBatch(first);
  v1::Receipt receipt = ada.ReadReceipt();
  EXPECT_EQ(receipt.sequence(), 1u);
  EXPECT_EQ(receipt.result(), v1::RECEIPT_RESULT_ACCEPTED);
  receipt = ada.ReadReceipt();
  EXPECT_EQ(receipt.sequence(), 2u);
  EXPECT_EQ(receipt.result(), v1::RECEIPT_RESULT_STALE);
  receipt = ada.ReadReceipt();
  EXPECT_EQ(receipt.sequence(), 3u);
  EXPECT_EQ(receipt.result(), v1::RECEIPT_RESULT_ACCEPTED);
  ASSERT_TRUE(collector_->WaitForIteration(absl::Seconds(20)));
  collector_->Trained(2 * kBlockSteps);
  OpenIteration(2);
  EXPECT_EQ(ada.ReadTicket().policy_version(), 2u);
  EXPECT_EQ(ada.ReadTicket().id(), 4u);
  const v1::StepAccount account = collector_->account();
  EXPECT_EQ(account.collected(), 3 * kBlockSteps);
  EXPECT_EQ(account.trained(), 2 * kBlockSteps);
  EXPECT_EQ(account.stale(), kBlockSteps);
}

TEST_F(LearnerServiceTest, AFreedCreditBringsTheNextTicket) {
  Serve();
  OpenIteration(1);
  ScriptedActor ada(port_, "ada");
  ada.Join();
  const v1::Ticket first = ada.ReadTicket();
  ada.SendBatch(first);
  EXPECT_EQ(ada.ReadReceipt().result(), v1::RECEIPT_RESULT_ACCEPTED);
  EXPECT_EQ(ada.ReadTicket().first_env(), 2u);
}

TEST_F(LearnerServiceTest, TicketsOfABrokenConnectionGoToTheOthers) {
  Serve();
  ScriptedActor ada(port_, "ada"), bob(port_, "bob", 2);
  ada.Join();
  bob.Join();
  OpenIteration(1);
  const v1::Ticket adas = ada.ReadTicket();
  const v1::Ticket bobs = bob.ReadTicket();
  ada.Break();
  EXPECT_EQ(bob.ReadTicket().id(), adas.id());
  EXPECT_EQ(collector_->actors(), 1);
  // Ada comes back: bob works on everything that is left.
  ada.Connect();
  EXPECT_EQ(ada.Join(), 0u);
  ada.SendBatch(adas);
  EXPECT_EQ(ada.ReadReceipt().result(), v1::RECEIPT_RESULT_ACCEPTED);
  bob.SendBatch(adas);
  bob.SendBatch(bobs);
  EXPECT_EQ(bob.ReadReceipt().result(), v1::RECEIPT_RESULT_STALE);
  EXPECT_EQ(bob.ReadReceipt().result(), v1::RECEIPT_RESULT_ACCEPTED);
  EXPECT_TRUE(collector_->WaitForIteration(absl::Seconds(20)));
}

TEST_F(LearnerServiceTest, ANewerStreamOfTheSameActorTakesOver) {
  Serve();
  OpenIteration(1);
  ScriptedActor before(port_, "ada", 2);
  before.Join();
  const v1::Ticket ticket = before.ReadTicket();
  before.ReadTicket();
  before.SendBatch(ticket);
  EXPECT_EQ(before.ReadReceipt().result(), v1::RECEIPT_RESULT_ACCEPTED);
  ScriptedActor after(port_, "ada", 2);
  EXPECT_EQ(after.Join(), 1u);
  EXPECT_EQ(before.End().error_code(), grpc::StatusCode::ABORTED);
  EXPECT_EQ(after.ReadTicket().first_env(), 2u);
  EXPECT_EQ(collector_->actors(), 1);
}

TEST_F(LearnerServiceTest, AGoodbyeFreesTicketsAndEndsTheStreamWithOk) {
  Serve();
  ScriptedActor ada(port_, "ada"), bob(port_, "bob", 2);
  ada.Join();
  bob.Join();
  OpenIteration(1);
  const v1::Ticket adas = ada.ReadTicket();
  bob.ReadTicket();
  ada.SendGoodbye();
  EXPECT_TRUE(ada.End().ok());
  EXPECT_EQ(bob.ReadTicket().id(), adas.id());
  EXPECT_EQ(collector_->account().lost(), 0u);
}

TEST_F(LearnerServiceTest, FinishTellsEveryActorAndThoseWhoComeLater) {
  Serve();
  ScriptedActor ada(port_, "ada"), bob(port_, "bob");
  ada.Join();
  bob.Join();
  service_.Finish();
  service_.Finish();
  for (ScriptedActor* actor : {&ada, &bob}) {
    EXPECT_TRUE(actor->Read().has_finished());
    EXPECT_TRUE(actor->End().ok());
  }
  service_.WaitUntilIdle(absl::Seconds(20));
  EXPECT_EQ(collector_->actors(), 0);
  ScriptedActor cora(port_, "cora");
  cora.Join();
  EXPECT_TRUE(cora.Read().has_finished());
  EXPECT_TRUE(cora.End().ok());
}

TEST_F(LearnerServiceTest, WaitUntilIdleGivesUpAfterItsTimeout) {
  Serve();
  ScriptedActor ada(port_, "ada");
  ada.Join();
  service_.WaitUntilIdle(absl::ZeroDuration());
  EXPECT_EQ(collector_->actors(), 1);
}

TEST_F(LearnerServiceTest, ThreeRejectedBatchesInARowEndTheStream) {
  Serve();
  OpenIteration(1);
  ScriptedActor ada(port_, "ada");
  ada.Join();
  v1::Ticket ticket = ada.ReadTicket();
  // Two rejected, one accepted, three rejected.
  for (const bool finite : {false, false, true, false, false}) {
    ada.SendBatch(ticket, finite);
    EXPECT_EQ(ada.ReadReceipt().result(), finite ? v1::RECEIPT_RESULT_ACCEPTED : v1::RECEIPT_RESULT_REJECTED);
    ticket = ada.ReadTicket();
  }
  ada.SendBatch(ticket, false);
  EXPECT_EQ(ada.ReadReceipt().result(), v1::RECEIPT_RESULT_REJECTED);
  const grpc::Status status = ada.End();
  EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_THAT(status.error_message(), HasSubstr("tensors.obs: element 0 is not finite"));
  WaitUntil([&] { return collector_->actors() == 0; });
  EXPECT_EQ(collector_->account().rejected(), 5 * kBlockSteps);
}

TEST_F(LearnerServiceTest, ServerShutsDownUnderOpenStreams) {
  Serve();
  OpenIteration(1);
  ScriptedActor ada(port_, "ada");
  ada.Join();
  ada.ReadTicket();
  server_->Shutdown(std::chrono::system_clock::now());
  EXPECT_FALSE(ada.End().ok());
  EXPECT_EQ(collector_->actors(), 0);
}

// Actors that come, work, break off and go while iterations are opened; nothing is lost or trained twice.
TEST_F(LearnerServiceTest, AddsUpWhileConnectionsComeAndGo) {
  constexpr int kIterations = 15;
  Serve();
  std::atomic<bool> done{false};
  std::vector<std::thread> threads;
  for (int i = 0; i < 3; ++i) {
    threads.emplace_back([&, i] {
      for (int life = 0; !done; ++life) {
        ScriptedActor actor(port_, "actor-" + std::to_string(i) + "-" + std::to_string(life));
        actor.Join();
        for (int fragment = 0; fragment < 1 + i + life % 3; ++fragment) {
          const v1::CollectResponse response = actor.Read();
          if (response.has_finished()) return;
          if (!response.has_ticket()) break;
          actor.SendBatch(response.ticket());
          if (actor.Read().has_finished()) return;
        }
      }
    });
  }
  for (int iteration = 1; iteration <= kIterations; ++iteration) {
    OpenIteration(iteration);
    if (!collector_->WaitForIteration(absl::Seconds(20))) {
      ADD_FAILURE() << "iteration " << iteration << " waits for " << collector_->HoldersForPeople();
      break;
    }
    collector_->Trained(2 * kBlockSteps);
  }
  done = true;
  service_.Finish();
  for (std::thread& thread : threads) thread.join();
  service_.WaitUntilIdle(absl::Seconds(20));
  const v1::StepAccount account = collector_->CloseBooks();
  EXPECT_EQ(account.trained(), kIterations * 2 * kBlockSteps);
  EXPECT_EQ(account.collected(), account.trained() + account.stale() + account.rejected() + account.lost());
  EXPECT_EQ(account.pending(), 0u);
}

}  // namespace
}  // namespace skein
