// SPDX-License-Identifier: Apache-2.0
#include "learner/collect/policy_publisher.h"

#include <memory>
#include <vector>

#include "gmock/gmock.h"
#include "tests/learner/service_fixture.h"

namespace skein {
namespace {

using testing::ElementsAre;

// A publisher behind the learner's service on a loopback socket, and who may subscribe.
class PolicyPublisherTest : public LearnerServiceTest {
 protected:
  PolicyPublisherTest() {
    Serve();
    ada_ = std::make_unique<ScriptedActor>(port_, "ada");
    bob_ = std::make_unique<ScriptedActor>(port_, "bob");
    ada_->Join();
    bob_->Join();
  }

  std::unique_ptr<ScriptedActor> ada_, bob_;
};

TEST_F(PolicyPublisherTest, ALateSubscriberGetsTheTwoNewestAndThenEachNewOne) {
  for (uint64_t version : {1, 2, 3}) Publish(version);
  auto subscription = ada_->Subscribe();
  EXPECT_EQ(subscription->Next(), 2u);
  EXPECT_EQ(subscription->Next(), 3u);
  Publish(4);
  EXPECT_EQ(subscription->Next(), 4u);
}

TEST_F(PolicyPublisherTest, ASubscriberGetsNothingThatItHas) {
  for (uint64_t version : {1, 2, 3}) Publish(version);
  auto subscription = ada_->Subscribe(2), up_to_date = bob_->Subscribe(3);
  EXPECT_EQ(subscription->Next(), 3u);
  Publish(4);
  EXPECT_EQ(subscription->Next(), 4u);
  EXPECT_EQ(up_to_date->Next(), 4u);
}

TEST_F(PolicyPublisherTest, AnEarlySubscriberWaitsForTheFirst) {
  auto subscription = ada_->Subscribe();
  Publish(1);
  EXPECT_EQ(subscription->Next(), 1u);
}

TEST_F(PolicyPublisherTest, ASlowSubscriberSkipsVersions) {
  constexpr size_t kLarge = 8 << 20;  // More than a connection buffers for someone who does not read.
  Publish(1, kLarge);
  auto slow = ada_->Subscribe();
  auto quick = bob_->Subscribe();
  EXPECT_EQ(quick->Next(), 1u);
  slow->reader->WaitForInitialMetadata();  // Its first write is under way.
  std::vector<uint64_t> quick_versions;
  for (uint64_t version = 2; version <= 6; ++version) {
    Publish(version, kLarge);
    quick_versions.push_back(quick->Next());
  }
  EXPECT_THAT(quick_versions, ElementsAre(2, 3, 4, 5, 6));
  EXPECT_EQ(slow->Next(), 1u);
  EXPECT_EQ(slow->Next(), 5u);
  EXPECT_EQ(slow->Next(), 6u);
}

TEST_F(PolicyPublisherTest, FinishEndsStreamsWithOkNowAndLater) {
  Publish(1);
  auto subscription = ada_->Subscribe();
  EXPECT_EQ(subscription->Next(), 1u);
  publisher_.Finish();
  publisher_.Finish();
  EXPECT_TRUE(subscription->End().ok());
  EXPECT_TRUE(ada_->Subscribe()->End().ok());
  Publish(2);  // Nobody is there to get it.
}

TEST_F(PolicyPublisherTest, AnotherRunIsRefused) {
  EXPECT_EQ(ada_->Subscribe(0, "other")->End().error_code(), grpc::StatusCode::FAILED_PRECONDITION);
}

TEST_F(PolicyPublisherTest, ASubscriberThatLeavesDisturbsNobody) {
  Publish(1);
  auto leaver = ada_->Subscribe(), stayer = bob_->Subscribe();
  EXPECT_EQ(leaver->Next(), 1u);
  EXPECT_EQ(stayer->Next(), 1u);
  leaver->context.TryCancel();
  EXPECT_EQ(leaver->End().error_code(), grpc::StatusCode::CANCELLED);
  for (uint64_t version = 2; version < 10; ++version) {
    Publish(version);
    EXPECT_EQ(stayer->Next(), version);
  }
}

}  // namespace
}  // namespace skein
