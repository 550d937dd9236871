// SPDX-License-Identifier: Apache-2.0
#include "actor/learner_link.h"

#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <thread>

#include "base/net/grpc_transport.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/actor/fake_learner.h"
#include "tests/actor/learner_link_fixture.h"
#include "tests/learner/sample_metrics.h"

namespace skein {
namespace {

using testing::HasSubstr;

TEST_F(LearnerLinkTest, DeliversUntilTheRunIsFinished) {
  FakeLearner learner([](int, Stream* stream) {
    const v1::Hello hello = Welcome(stream);
    EXPECT_EQ(hello.protocol_major(), kProtocolMajor);
    EXPECT_EQ(hello.run_id(), "run");
    EXPECT_EQ(hello.actor_id(), "ada");
    EXPECT_EQ(hello.generation(), 1u);
    EXPECT_EQ(hello.runners(), 2u);
    EXPECT_GE(hello.ticket_credits(), hello.runners());
    EXPECT_EQ(hello.env_spec().env_id(), "Sample-v0");
    EXPECT_EQ(hello.previous_generation(), 0u);
    SendTicket(stream, 5);
    SendTicket(stream, 6);
    const v1::FragmentHeader first = ReadFragment(stream), second = ReadFragment(stream);
    EXPECT_EQ(first.ticket_id(), 5u);
    EXPECT_EQ(first.sequence(), 1u);
    EXPECT_EQ(second.sequence(), 2u);
    EXPECT_EQ(second.env_steps_collected(), 20u);
    SendReceipt(stream, 1);
    SendReceipt(stream, 2);
    return Finished(stream);
  });
  StartLink(TargetAt(learner.port()));
  Work(2);
  EXPECT_EQ(End(), absl::OkStatus());
  EXPECT_TRUE(link_->finished());
  EXPECT_EQ(outbox_.unreceipted(), 0u);
  EXPECT_EQ(learner.connections(), 1);
  EXPECT_EQ(MetricValue(registry_, "skein_actor_receipt_seconds"), 2);  // Of each fragment.
}

TEST_F(LearnerLinkTest, SendsAgainOnTheNextConnectionWhatWasNotReceipted) {
  FakeLearner learner([](int connection, Stream* stream) {
    if (connection == 0) {
      Welcome(stream);
      for (uint64_t id : {5, 6, 7}) SendTicket(stream, id);
      for (int i = 0; i < 3; ++i) ReadFragment(stream);
      SendReceipt(stream, 1);
      return grpc::Status(grpc::StatusCode::UNAVAILABLE, "gone");
    }
    // Of the three the learner had two; the receipt of the second is on its way for ever.
    Welcome(stream, 2);
    EXPECT_EQ(ReadFragment(stream).sequence(), 3u);
    SendReceipt(stream, 3);
    SendTicket(stream, 8);
    EXPECT_EQ(ReadFragment(stream).sequence(), 4u);
    SendReceipt(stream, 4);
    return Finished(stream);
  });
  StartLink(TargetAt(learner.port()));
  Work(4);
  EXPECT_EQ(End(), absl::OkStatus());
  EXPECT_EQ(outbox_.unreceipted(), 0u);
}

TEST_F(LearnerLinkTest, FindsALearnerThatWasStartedAgain) {
  std::atomic<bool> delivered{false};
  auto before = std::make_unique<FakeLearner>([&](int, Stream* stream) {
    Welcome(stream);
    SendTicket(stream, 5);
    ReadFragment(stream);
    delivered = true;
    return Drain(stream);
  });
  const int port = before->port();
  StartLink(TargetAt(port));
  Work(1);
  WaitUntil([&] { return delivered.load(); });
  before.reset();
  FakeLearner after(
      [&](int, Stream* stream) {
        Welcome(stream, 0);
        EXPECT_EQ(ReadFragment(stream).sequence(), 1u);
        SendReceipt(stream, 1);
        return Finished(stream);
      },
      port);
  EXPECT_EQ(End(), absl::OkStatus());
  EXPECT_EQ(outbox_.unreceipted(), 0u);
}

TEST_F(LearnerLinkTest, TriesAgainUntilTheLearnerHasStarted) {
  FakeLearner learner([](int connection, Stream* stream) {
    if (connection < 2) return grpc::Status(grpc::StatusCode::UNAVAILABLE, "still starting");
    Welcome(stream);
    return Finished(stream);
  });
  StartLink(TargetAt(learner.port()));
  EXPECT_EQ(End(), absl::OkStatus());
  EXPECT_EQ(learner.connections(), 3);
}

class FaultRow23 : public LearnerLinkTest {};

TEST_F(FaultRow23, ConnectsAgainToALearnerThatHasTooMuchToDo) {
  FakeLearner learner([](int connection, Stream* stream) {
    Welcome(stream);
    if (connection == 0) return grpc::Status(grpc::StatusCode::RESOURCE_EXHAUSTED, "no memory for more streams");
    return Finished(stream);
  });
  StartLink(TargetAt(learner.port()));
  EXPECT_EQ(End(), absl::OkStatus());
  EXPECT_EQ(learner.connections(), 2);
}

TEST_F(FaultRow23, SaysWhatToSetWhenAFragmentIsLargerThanMessagesMayBe) {
  FakeLearner learner([](int, Stream* stream) {
    Welcome(stream);
    SendTicket(stream, 5);
    return Drain(stream);
  });
  StartLink(TargetAt(learner.port()));
  const auto held = outbox_.TakeTicket();
  ASSERT_TRUE(held);
  Fragment fragment{.header = {}, .block = std::make_shared<const std::string>()};
  fragment.header.set_ticket_id(held->ticket.id());
  fragment.header.set_steps(5);
  fragment.header.set_group_envs(2);
  fragment.block =
      std::make_shared<const std::string>(std::string(kMaxMessageBytes, 'x'));  // And a few bytes of headers.
  outbox_.PutFragment(std::move(fragment));
  const absl::Status status = End();
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(status.message()), HasSubstr("5 steps x 2 environments"));
  EXPECT_THAT(std::string(status.message()), HasSubstr("lower rollout.fragment_steps"));
  EXPECT_EQ(learner.connections(), 1);
}

TEST_F(LearnerLinkTest, ReturnsARefusalThatIsForGood) {
  for (const auto code : {grpc::StatusCode::ABORTED, grpc::StatusCode::FAILED_PRECONDITION,
                          grpc::StatusCode::INVALID_ARGUMENT, grpc::StatusCode::UNAUTHENTICATED}) {
    FakeLearner learner([&](int, Stream* stream) {
      ReadHello(stream);
      return grpc::Status(code, "because");
    });
    ended_ = false;
    StartLink(TargetAt(learner.port()));
    const absl::Status status = End();
    EXPECT_EQ(static_cast<int>(status.code()), static_cast<int>(code));
    EXPECT_THAT(std::string(status.message()), HasSubstr("because"));
    EXPECT_FALSE(link_->finished());
  }
}

TEST_F(LearnerLinkTest, ReturnsARefusalInTheMiddleEvenWhileItIsSending) {
  for (int repetition = 0; repetition < 20; ++repetition) {
    FakeLearner learner([&](int, Stream* stream) {
      Welcome(stream);
      SendTicket(stream, 100 + repetition);
      ReadFragment(stream);
      return grpc::Status(grpc::StatusCode::ABORTED, "a newer stream took over");
    });
    ended_ = false;
    StartLink(TargetAt(learner.port(), repetition + 1));
    ASSERT_TRUE(outbox_.TakeTicket());
    for (int i = 0; i < 3; ++i) {
      Fragment fragment{.header = {}, .block = std::make_shared<const std::string>()};
      fragment.block = std::make_shared<const std::string>(std::string(1 << 20, 'x'));
      outbox_.PutFragment(std::move(fragment));
    }
    EXPECT_TRUE(absl::IsAborted(End())) << status_;
  }
}

TEST_F(LearnerLinkTest, SaysGoodbyeWithItsTotalAfterTheLastFragment) {
  std::atomic<uint64_t> total{0};
  FakeLearner learner([&](int, Stream* stream) {
    Welcome(stream);
    for (uint64_t id : {5, 6}) SendTicket(stream, id);
    for (uint64_t sequence : {1, 2}) {
      EXPECT_EQ(ReadFragment(stream).sequence(), sequence);
      SendReceipt(stream, sequence);
    }
    v1::CollectRequest request;
    EXPECT_TRUE(stream->Read(&request));
    EXPECT_TRUE(request.has_goodbye());
    total = request.goodbye().env_steps_collected();
    EXPECT_FALSE(stream->Read(&request));
    return grpc::Status::OK;
  });
  StartLink(TargetAt(learner.port()));
  Work(2);
  EXPECT_TRUE(outbox_.WaitUntilReceipted(absl::Seconds(20)));
  link_->Stop();
  outbox_.StopSending();
  EXPECT_EQ(End(), absl::OkStatus());
  EXPECT_EQ(total, 20u);
  EXPECT_FALSE(link_->finished());
  EXPECT_EQ(learner.connections(), 1);
}

TEST_F(LearnerLinkTest, StopsWithoutAnyLearner) {
  StartLink({});
  link_->Stop();
  EXPECT_EQ(End(), absl::OkStatus());
  ended_ = false;
  StartLink(TargetAt(1));  // Nobody listens there.
  link_->Stop();
  EXPECT_EQ(End(), absl::OkStatus());
}

TEST_F(LearnerLinkTest, AbortBreaksAConnectionThatIsBeingMade) {
  // A socket whose peer never says a word: the kernel accepts, nobody answers.
  const int listener = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof(address);
  ASSERT_EQ(bind(listener, reinterpret_cast<sockaddr*>(&address), size), 0);
  ASSERT_EQ(listen(listener, 4), 0);
  ASSERT_EQ(getsockname(listener, reinterpret_cast<sockaddr*>(&address), &size), 0);
  StartLink(TargetAt(ntohs(address.sin_port)));
  const int peer = accept(listener, nullptr, nullptr);  // The link is on its way.
  EXPECT_GE(peer, 0);
  link_->Abort();
  EXPECT_EQ(End(), absl::OkStatus());
  close(peer);
  close(listener);
}

TEST_F(LearnerLinkTest, AbortBreaksAConnectionWhoseLearnerIsSilent) {
  std::atomic<bool> there{false};
  FakeLearner learner([&](int connection, Stream* stream) {
    ReadHello(stream);
    if (connection > 0) SendWelcome(stream);
    there = true;
    return Drain(stream);
  });
  for (int connection = 0; connection < 2; ++connection) {
    there = ended_ = false;
    StartLink(TargetAt(learner.port()));
    WaitUntil([&] { return there.load(); });
    link_->Abort();
    EXPECT_EQ(End(), absl::OkStatus());
  }
}

TEST_F(LearnerLinkTest, AbortBreaksAWriteThatNobodyReads) {
  std::atomic<bool> sent{false}, over{false};
  FakeLearner learner([&](int, Stream* stream) {
    Welcome(stream);
    SendTicket(stream, 5);
    sent = true;
    WaitUntil([&] { return over.load(); });
    return grpc::Status::OK;
  });
  StartLink(TargetAt(learner.port()));
  ASSERT_TRUE(outbox_.TakeTicket());
  for (int i = 0; i < 4; ++i) {
    Fragment fragment{.header = {}, .block = std::make_shared<const std::string>()};
    fragment.block = std::make_shared<const std::string>(std::string(8 << 20, 'x'));
    outbox_.PutFragment(std::move(fragment));
  }
  WaitUntil([&] { return sent.load(); });
  link_->Abort();
  EXPECT_EQ(End(), absl::OkStatus());
  over = true;
}

TEST_F(LearnerLinkTest, AnotherTargetBreaksTheConnectionAndClosesTheLifeBefore) {
  FakeLearner before([](int, Stream* stream) {
    Welcome(stream);
    SendTicket(stream, 5);
    return Drain(stream);
  });
  FakeLearner after([](int, Stream* stream) {
    const v1::Hello hello = Welcome(stream);
    EXPECT_EQ(hello.actor_id(), "ada");
    EXPECT_EQ(hello.generation(), 2u);
    EXPECT_EQ(hello.previous_actor_id(), "ada");
    EXPECT_EQ(hello.previous_generation(), 1u);
    EXPECT_EQ(hello.previous_env_steps_collected(), 10u);
    return Finished(stream);
  });
  StartLink(TargetAt(before.port()));
  Work(1);
  link_->SetTarget(TargetAt(before.port()));  // The same: nothing changes.
  link_->SetTarget(TargetAt(after.port(), 2));
  EXPECT_EQ(End(), absl::OkStatus());
  EXPECT_TRUE(link_->finished());
  EXPECT_EQ(before.connections(), 1);
}

TEST_F(LearnerLinkTest, WaitsForATarget) {
  FakeLearner learner([](int, Stream* stream) {
    Welcome(stream);
    return Finished(stream);
  });
  StartLink({});
  link_->SetTarget(TargetAt(learner.port()));
  EXPECT_EQ(End(), absl::OkStatus());
}

TEST_F(LearnerLinkTest, ConnectsAgainToALearnerThatDoesNotWelcomeIt) {
  FakeLearner learner([](int connection, Stream* stream) {
    if (connection == 0) {
      ReadHello(stream);
      SendTicket(stream, 5);
      return Drain(stream);
    }
    Welcome(stream);
    return Finished(stream);
  });
  StartLink(TargetAt(learner.port()));
  EXPECT_EQ(End(), absl::OkStatus());
  EXPECT_EQ(learner.connections(), 2);
}

TEST_F(LearnerLinkTest, HandsPoliciesOnWithTheirConnection) {
  std::atomic<uint64_t> newest{0}, first_stream{0};
  std::atomic<bool> again{false};  // The newest one came over the second connection, too.
  std::atomic<int> refusals{0};
  options_.on_policy = [&](uint64_t stream, const v1::PolicySnapshot& snapshot) {
    if (first_stream == 0) first_stream = stream;
    if (snapshot.version() == 3 && refusals++ == 0) return absl::InvalidArgumentError("broken");
    newest = snapshot.version();
    if (stream > first_stream && snapshot.version() == 3) again = true;
    return absl::OkStatus();
  };
  FakeLearner learner([&](int connection, Stream* stream) {
    Welcome(stream);
    if (connection == 0) {
      WaitUntil([&] { return newest == 3; });
      return grpc::Status(grpc::StatusCode::UNAVAILABLE, "gone");
    }
    WaitUntil([&] { return again.load(); });
    return Finished(stream);
  });
  learner.policies = [](const v1::SubscribePolicyRequest& request) {
    EXPECT_EQ(request.run_id(), "run");
    EXPECT_EQ(request.actor_id(), "ada");
    EXPECT_EQ(request.newest_version(), 0u);  // The store of this test keeps none.
    return std::vector<uint64_t>{2, 3};
  };
  StartLink(TargetAt(learner.port()));
  EXPECT_EQ(End(), absl::OkStatus());
  EXPECT_GE(refusals, 2);  // Refused once, asked for again.
  EXPECT_EQ(metrics_.policy_version(), 3u);
}

}  // namespace
}  // namespace skein
