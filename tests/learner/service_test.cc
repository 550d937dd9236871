// SPDX-License-Identifier: Apache-2.0
#include "learner/collect/service.h"

#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

#include "gmock/gmock.h"
#include "tests/base/health_check.h"
#include "tests/learner/sample_metrics.h"
#include "tests/learner/service_fixture.h"
#include "tests/testing/old_hello.h"
#include "tests/testing/wait_until.h"

namespace skein {
namespace {

using testing::HasSubstr;

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
  rude.SendFragment(v1::Ticket());
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

TEST_F(LearnerServiceTest, RefusesAnActorThatKnowsNoFrames) {
  Serve();
  ScriptedActor old(port_, "ada");
  old.SendBytes(OldHello());
  const grpc::Status status = old.End();
  EXPECT_EQ(status.error_code(), grpc::StatusCode::FAILED_PRECONDITION);
  EXPECT_EQ(status.error_message(), "protocol 1.0 of the actor and 2.0 of the learner differ in their major version");
  EXPECT_EQ(MetricValue(registry_, "skein_learner_malformed_messages_total"), 0);
  ScriptedActor nonsense(port_, "bob");
  nonsense.SendBytes("GET / HTTP/1.1\r\n\r\n");
  EXPECT_EQ(nonsense.End().error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(MetricValue(registry_, "skein_learner_malformed_messages_total"), 1);
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
  ada.SendFragment(second);
  ada.SendFragment(second);
  ada.SendFragment(first);
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
  collector_->Trained(2 * kFragmentSteps);
  OpenIteration(2);
  EXPECT_EQ(ada.ReadTicket().policy_version(), 2u);
  EXPECT_EQ(ada.ReadTicket().id(), 4u);
  const v1::StepAccount account = collector_->account();
  EXPECT_EQ(account.collected(), 3 * kFragmentSteps);
  EXPECT_EQ(account.trained(), 2 * kFragmentSteps);
  EXPECT_EQ(account.stale(), kFragmentSteps);
}

TEST_F(LearnerServiceTest, AFreedCreditBringsTheNextTicket) {
  Serve();
  OpenIteration(1);
  ScriptedActor ada(port_, "ada");
  ada.Join();
  const v1::Ticket first = ada.ReadTicket();
  ada.SendFragment(first);
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
  ada.SendFragment(adas);
  EXPECT_EQ(ada.ReadReceipt().result(), v1::RECEIPT_RESULT_ACCEPTED);
  bob.SendFragment(adas);
  bob.SendFragment(bobs);
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
  before.SendFragment(ticket);
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

TEST_F(LearnerServiceTest, ThreeRejectedFragmentsInARowEndTheStream) {
  Serve();
  OpenIteration(1);
  ScriptedActor ada(port_, "ada");
  ada.Join();
  v1::Ticket ticket = ada.ReadTicket();
  // Two rejected, one accepted, three rejected.
  for (const bool finite : {false, false, true, false, false}) {
    ada.SendFragment(ticket, finite);
    EXPECT_EQ(ada.ReadReceipt().result(), finite ? v1::RECEIPT_RESULT_ACCEPTED : v1::RECEIPT_RESULT_REJECTED);
    ticket = ada.ReadTicket();
  }
  ada.SendFragment(ticket, false);
  EXPECT_EQ(ada.ReadReceipt().result(), v1::RECEIPT_RESULT_REJECTED);
  const grpc::Status status = ada.End();
  EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_THAT(status.error_message(), HasSubstr("fields.obs: element 0 is not finite"));
  WaitUntil([&] { return collector_->actors() == 0; });
  EXPECT_EQ(collector_->account().rejected(), 5 * kFragmentSteps);
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
      for (int generation = 0; !done; ++generation) {
        ScriptedActor actor(port_, "actor-" + std::to_string(i) + "-" + std::to_string(generation));
        actor.Join();
        for (int fragment = 0; fragment < 1 + i + generation % 3; ++fragment) {
          const v1::CollectResponse response = actor.Read();
          if (response.has_finished()) return;
          if (!response.has_ticket()) break;
          actor.SendFragment(response.ticket());
          if (actor.Read().has_finished()) return;
        }
      }
    });
  }
  for (int iteration = 1; iteration <= kIterations; ++iteration) {
    OpenIteration(iteration);
    if (!collector_->WaitForIteration(absl::Seconds(20))) {
      ADD_FAILURE() << "iteration " << iteration << " waits for " << collector_->DescribeHolders();
      break;
    }
    collector_->Trained(2 * kFragmentSteps);
  }
  done = true;
  service_.Finish();
  for (std::thread& thread : threads) thread.join();
  service_.WaitUntilIdle(absl::Seconds(20));
  const v1::StepAccount account = collector_->CloseAccounts();
  EXPECT_EQ(account.trained(), kIterations * 2 * kFragmentSteps);
  EXPECT_EQ(account.collected(), account.trained() + account.stale() + account.rejected() + account.lost());
  EXPECT_EQ(account.pending(), 0u);
}

}  // namespace
}  // namespace skein
