// SPDX-License-Identifier: Apache-2.0
#include "learner/policy_publisher.h"

#include <chrono>

#include "base/grpc_transport.h"
#include "gmock/gmock.h"
#include "grpcpp/client_context.h"
#include "gtest/gtest.h"
#include "learner/service.h"
#include "tests/learner/sample_batch.h"

namespace skein {
namespace {

using testing::ElementsAre;

// A publisher behind the learner's service on a loopback socket.
class PolicyPublisherTest : public testing::Test {
 protected:
  PolicyPublisherTest() {
    Collector::Options options;
    options.run_id = "run";
    options.shape = MakeSampleShape({});
    options.num_envs = 2;
    collector_ = std::make_unique<Collector>(options, &metrics_);
    service_.Serve("run", collector_.get(), &publisher_);
    server_ = *StartGrpcServer("127.0.0.1:0", &service_, &port_);
  }
  ~PolicyPublisherTest() override { server_->Shutdown(std::chrono::system_clock::now()); }

  void Publish(uint64_t version, size_t bytes = 16) {
    auto snapshot = std::make_shared<v1::PolicySnapshot>();
    snapshot->set_version(version);
    snapshot->add_tensors()->set_data(std::string(bytes, 'w'));
    publisher_.Publish(std::move(snapshot));
  }

  // On a connection of its own.
  struct Subscription {
    std::unique_ptr<v1::Learner::Stub> stub;
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
  std::unique_ptr<Subscription> Subscribe(uint64_t newest_version, const std::string& run_id = "run") {
    auto subscription = std::make_unique<Subscription>();
    subscription->stub = v1::Learner::NewStub(OpenChannel("127.0.0.1:" + std::to_string(port_)));
    subscription->context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(20));
    v1::SubscribePolicyRequest request;
    request.set_run_id(run_id);
    request.set_newest_version(newest_version);
    subscription->reader = subscription->stub->SubscribePolicy(&subscription->context, request);
    return subscription;
  }

  prometheus::Registry registry_;
  LearnerMetrics metrics_{&registry_};
  PolicyPublisher publisher_{&metrics_};
  std::unique_ptr<Collector> collector_;
  LearnerService service_;
  int port_ = 0;
  std::unique_ptr<grpc::Server> server_;
};

TEST_F(PolicyPublisherTest, ALateSubscriberGetsTheTwoNewestAndThenEachNewOne) {
  for (uint64_t version : {1, 2, 3}) Publish(version);
  auto subscription = Subscribe(0);
  EXPECT_EQ(subscription->Next(), 2u);
  EXPECT_EQ(subscription->Next(), 3u);
  Publish(4);
  EXPECT_EQ(subscription->Next(), 4u);
}

TEST_F(PolicyPublisherTest, ASubscriberGetsNothingThatItHas) {
  for (uint64_t version : {1, 2, 3}) Publish(version);
  auto subscription = Subscribe(2), up_to_date = Subscribe(3);
  EXPECT_EQ(subscription->Next(), 3u);
  Publish(4);
  EXPECT_EQ(subscription->Next(), 4u);
  EXPECT_EQ(up_to_date->Next(), 4u);
}

TEST_F(PolicyPublisherTest, AnEarlySubscriberWaitsForTheFirst) {
  auto subscription = Subscribe(0);
  Publish(1);
  EXPECT_EQ(subscription->Next(), 1u);
}

TEST_F(PolicyPublisherTest, ASlowSubscriberSkipsVersions) {
  constexpr size_t kLarge = 8 << 20;  // More than a connection buffers for someone who does not read.
  Publish(1, kLarge);
  auto slow = Subscribe(0);
  auto quick = Subscribe(0);
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
  auto subscription = Subscribe(0);
  EXPECT_EQ(subscription->Next(), 1u);
  publisher_.Finish();
  publisher_.Finish();
  EXPECT_TRUE(subscription->End().ok());
  EXPECT_TRUE(Subscribe(0)->End().ok());
  Publish(2);  // Nobody is there to get it.
}

TEST_F(PolicyPublisherTest, AnotherRunIsRefused) {
  EXPECT_EQ(Subscribe(0, "other")->End().error_code(), grpc::StatusCode::FAILED_PRECONDITION);
}

TEST_F(PolicyPublisherTest, ASubscriberThatLeavesDisturbsNobody) {
  Publish(1);
  auto leaver = Subscribe(0), stayer = Subscribe(0);
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
