// SPDX-License-Identifier: Apache-2.0
#include "actor/collect_call.h"

#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "actor/frame_bytes.h"
#include "base/net/grpc_transport.h"
#include "gtest/gtest.h"
#include "tests/actor/fake_learner.h"

namespace skein {
namespace {

grpc::ByteBuffer Hello() {
  v1::CollectRequest request;
  request.mutable_hello();
  return FrameBytes(request);
}

grpc::ByteBuffer Goodbye(uint64_t env_steps) {
  v1::CollectRequest request;
  request.mutable_goodbye()->set_env_steps_collected(env_steps);
  return FrameBytes(request);
}

// One call, whose requests are goodbyes that count.
class CollectCallTest : public testing::Test {
 protected:
  // `last`: the number of the last request; 0 = there is none.
  void Start(FakeLearner* learner, uint64_t last) {
    context_ = std::make_unique<grpc::ClientContext>();
    channel_ = OpenChannel("127.0.0.1:" + std::to_string(learner->port()));
    CollectCall::Options options;
    options.next = [this, last]() -> std::optional<CollectCall::Request> {
      EXPECT_FALSE(asking_.exchange(true));
      std::optional<CollectCall::Request> request;
      if (const uint64_t available = available_; given_ < available) {
        ++given_;
        request = {Goodbye(given_), given_ == last};
      }
      asking_ = false;
      return request;
    };
    options.on_response = [this](const v1::CollectResponse&) { ++responses_; };
    options.on_sent = [this](absl::Duration took) {
      EXPECT_GE(took, absl::ZeroDuration());
      ++sent_;
    };
    options.on_done = [this] { done_ = true; };
    call_ = std::make_unique<CollectCall>(options);
    call_->Start(channel_, context_.get(), Hello());
  }
  // Makes `each` more requests available on each of four threads and pumps after each.
  void PumpInFourHands(uint64_t each) {
    std::vector<std::thread> hands;
    for (int i = 0; i < 4; ++i) {
      hands.emplace_back([this, each] {
        for (uint64_t k = 0; k < each; ++k) {
          ++available_;
          call_->Pump();
        }
      });
    }
    for (std::thread& hand : hands) hand.join();
  }

  std::shared_ptr<grpc::Channel> channel_;
  std::unique_ptr<grpc::ClientContext> context_;
  std::atomic<uint64_t> available_{0};
  std::atomic<bool> asking_{false}, done_{false};
  uint64_t given_ = 0;  // Of the thread that asks.
  std::atomic<int> responses_{0}, sent_{0};
  std::unique_ptr<CollectCall> call_;
};

TEST_F(CollectCallTest, SendsAllInOrderFromAnyThreadAndEndsAfterTheLast) {
  constexpr uint64_t kEach = 200;
  std::atomic<uint64_t> received{0};
  FakeLearner learner([&](int, Stream* stream) {
    ReadHello(stream);
    v1::CollectRequest request;
    while (stream->Read(&request)) {
      EXPECT_EQ(request.goodbye().env_steps_collected(), ++received);
      stream->Write(v1::CollectResponse());
    }
    return grpc::Status::OK;
  });
  Start(&learner, 4 * kEach);
  PumpInFourHands(kEach);
  EXPECT_TRUE(call_->Wait().ok());
  EXPECT_TRUE(done_);
  EXPECT_EQ(received, 4 * kEach);
  EXPECT_EQ(responses_, static_cast<int>(4 * kEach));
  EXPECT_EQ(sent_, static_cast<int>(4 * kEach) - 1);  // The last is not told of.
}

TEST_F(CollectCallTest, EndsWithTheLearnersStatusWhileOthersPump) {
  for (int round = 0; round < 20; ++round) {
    FakeLearner learner([&](int, Stream* stream) {
      ReadHello(stream);
      v1::CollectRequest request;
      for (int i = 0; i < round * 5; ++i) stream->Read(&request);
      return grpc::Status(grpc::StatusCode::ABORTED, "enough");
    });
    Start(&learner, 0);
    PumpInFourHands(100);
    EXPECT_TRUE(absl::IsAborted(call_->Wait()));
    EXPECT_TRUE(done_.exchange(false));
    call_.reset();
    available_ = given_ = 0;
  }
}

TEST_F(CollectCallTest, CancelledItEndsAtOnceWithNothingToSend) {
  FakeLearner learner([&](int, Stream* stream) {
    ReadHello(stream);
    v1::CollectRequest request;
    EXPECT_FALSE(stream->Read(&request));
    return grpc::Status::OK;
  });
  Start(&learner, 0);
  call_->Pump();
  context_->TryCancel();
  EXPECT_TRUE(absl::IsCancelled(call_->Wait()));
  EXPECT_EQ(responses_, 0);
}

}  // namespace
}  // namespace skein
