// SPDX-License-Identifier: Apache-2.0
// What members hear from a coordinator whose successor has taken the state over.
#include <future>
#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/clock.h"
#include "base/net/grpc_transport.h"
#include "coordinator/service.h"
#include "grpcpp/client_context.h"
#include "gtest/gtest.h"
#include "tests/testing/wait_until.h"

namespace skein {
namespace {

// Does with what is written as it is told.
class FencedStore final : public StateStore {
 public:
  absl::StatusOr<std::map<std::string, std::string>> Load() override { return std::map<std::string, std::string>(); }
  absl::Status Write(const std::vector<StateChange>&) override {
    absl::MutexLock lock(&mu_);
    return result_;
  }
  absl::StatusOr<std::string> SetAside(const std::string&) override { return absl::UnimplementedError(""); }
  bool Serving() const override {
    absl::MutexLock lock(&mu_);
    return serving_;
  }

  void SetResult(const absl::Status& result) {
    absl::MutexLock lock(&mu_);
    result_ = result;
  }
  void StopServing() {
    absl::MutexLock lock(&mu_);
    serving_ = false;
  }

 private:
  mutable absl::Mutex mu_;
  absl::Status result_ ABSL_GUARDED_BY(mu_);
  bool serving_ ABSL_GUARDED_BY(mu_) = true;
};

class FencedServiceTest : public testing::Test {
 protected:
  FencedServiceTest() : metrics_(&registry_) {
    CoordinatorState::Options options;
    options.run_id = "run7";
    options.start_epoch = 1;
    v1::CoordinatorConfig* config = options.config.mutable_coordinator();
    config->set_lease_seconds(60);
    config->set_heartbeat_seconds(15);
    config->set_barrier_timeout_seconds(60);
    service_ = std::make_unique<CoordinatorService>(options, AddressRules(), &metrics_, nullptr, &store_);
    server_ = *StartGrpcServer("127.0.0.1:0", service_.get(), &port_);
    stub_ = v1::Coordinator::NewStub(OpenChannel(absl::StrCat("127.0.0.1:", port_)));
    for (uint32_t rank : {0, 1}) learners_[rank] = Join(rank);
  }
  ~FencedServiceTest() override {
    service_->Shutdown();
    server_->Shutdown(absl::ToChronoTime(absl::Now()));
  }

  v1::JoinResponse Join(uint32_t rank) {
    v1::JoinRequest request;
    request.set_protocol_major(kProtocolMajor);
    request.set_role(v1::ROLE_LEARNER);
    request.set_rank(rank);
    request.set_ranks(2);
    request.set_data_address(":7000");
    grpc::ClientContext context;
    v1::JoinResponse response;
    const absl::Status status = FromGrpc(stub_->Join(&context, request, &response));
    EXPECT_TRUE(status.ok()) << status;
    return response;
  }
  // What that rank hears when it arrives.
  absl::Status Arrive(size_t rank, double timeout_seconds = 60) {
    grpc::ClientContext context;
    context.set_deadline(absl::ToChronoTime(absl::Now() + absl::Seconds(20)));
    v1::BarrierRequest request;
    request.set_member_id(learners_[rank].member_id());
    request.set_member_generation(learners_[rank].generation());
    request.set_name("start");
    request.set_barrier_generation(1);
    request.set_timeout_seconds(timeout_seconds);
    v1::BarrierResponse response;
    return FromGrpc(stub_->ArriveAtBarrier(&context, request, &response));
  }
  auto ArriveAside(size_t rank, double timeout_seconds = 60) {
    return std::async(std::launch::async, [=, this] { return Arrive(rank, timeout_seconds); });
  }
  // How many calls have not heard yet.
  double Waiting() {
    for (const prometheus::MetricFamily& family : registry_.Collect()) {
      if (family.name == "skein_coordinator_barrier_waiters") return family.metric[0].gauge.value;
    }
    return -1;
  }

  prometheus::Registry registry_;
  CoordinatorMetrics metrics_;
  FencedStore store_;
  std::unique_ptr<CoordinatorService> service_;
  std::unique_ptr<grpc::Server> server_;
  std::unique_ptr<v1::Coordinator::Stub> stub_;
  v1::JoinResponse learners_[2];
  int port_ = 0;
};

TEST_F(FencedServiceTest, ABarrierWhoseRecordIsRefusedOpensForNobody) {
  auto first = ArriveAside(0);
  store_.SetResult(absl::AbortedError("another coordinator is the primary now"));
  const absl::Status second = Arrive(1);
  EXPECT_TRUE(absl::IsUnavailable(second)) << second;
  const absl::Status of_first = first.get();
  EXPECT_TRUE(absl::IsUnavailable(of_first)) << of_first;
  // Nor for who asks again: that it has opened is in this coordinator's memory alone.
  const absl::Status again = Arrive(0);
  EXPECT_TRUE(absl::IsUnavailable(again)) << again;
}

TEST_F(FencedServiceTest, ABarrierThatCouldNotBeWrittenBeforeTheEndOpensForNobody) {
  store_.SetResult(absl::UnavailableError("nobody answers"));
  auto first = ArriveAside(0), second = ArriveAside(1);
  ASSERT_TRUE(WaitUntil([&] { return Waiting() == 2; }));
  service_->Status();  // The second has been dealt with: it has opened.
  service_->Shutdown();
  EXPECT_TRUE(absl::IsUnavailable(first.get()));
  EXPECT_TRUE(absl::IsUnavailable(second.get()));
}

TEST_F(FencedServiceTest, WhatADiskRefusesHoldsNobodyUp) {
  store_.SetResult(absl::ResourceExhaustedError("full"));
  auto first = ArriveAside(0);
  EXPECT_TRUE(Arrive(1).ok());
  EXPECT_TRUE(first.get().ok());
}

TEST_F(FencedServiceTest, WhoWaitsInVainIsSentOn) {
  auto first = ArriveAside(0, 1);
  ASSERT_TRUE(WaitUntil([&] { return Waiting() == 1; }));
  store_.StopServing();
  const absl::Status status = first.get();  // Not that the other is late: it may be with the successor.
  EXPECT_TRUE(absl::IsUnavailable(status)) << status;
}

}  // namespace
}  // namespace skein
