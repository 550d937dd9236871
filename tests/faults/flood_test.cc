// SPDX-License-Identifier: Apache-2.0
// Those who come in thousands, or call without end, at real processes.
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <thread>

#include "absl/time/clock.h"
#include "base/net/grpc_transport.h"
#include "base/net/host_port.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "skein/v1/coordinator_service.grpc.pb.h"
#include "skein/v1/learner_service.grpc.pb.h"
#include "tests/faults/stranger.h"
#include "tests/testing/http_get.h"
#include "tests/testing/loopback.h"
#include "tests/testing/wait_until.h"

namespace skein {
namespace {

constexpr double kHeartbeatSeconds = 1;  // H.

std::unique_ptr<v1::Coordinator::Stub> Connect(const std::string& address) {
  return v1::Coordinator::NewStub(OpenChannel(address));
}

absl::StatusOr<v1::StatusResponse> GetStatus(v1::Coordinator::Stub* stub) {
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(20));
  v1::StatusResponse response;
  if (absl::Status s = FromGrpc(stub->GetStatus(&context, {}, &response)); !s.ok()) return s;
  return response;
}

// TCP connections that say nothing, or as much as an HTTP/2 client says at first.
class IdleConnections {
 public:
  IdleConnections(int port, int count) {
    rlimit files;
    getrlimit(RLIMIT_NOFILE, &files);
    files.rlim_cur = files.rlim_max;
    setrlimit(RLIMIT_NOFILE, &files);
    // The preface and empty SETTINGS.
    const std::string greeting("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\x00\x00\x04\x00\x00\x00\x00\x00", 24 + 9);
    for (int i = 0; i < count; ++i) {
      const int fd = ConnectTo(port);
      if (fd < 0) continue;
      if (i % 2 == 1 && write(fd, greeting.data(), greeting.size()) < 0) ADD_FAILURE() << "cannot write";
      fds_.push_back(fd);
    }
  }
  ~IdleConnections() {
    for (const int fd : fds_) close(fd);
  }
  size_t size() const { return fds_.size(); }

 private:
  std::vector<int> fds_;
};

// Two actors at work, with the heartbeats and leases of the defaults.
class FaultRow24 : public testing::Test {
 protected:
  FaultRow24() {
    cluster_.StartCoordinator();
    cluster_.StartLearner();
    for (auto& actor : actors_) actor = cluster_.StartActor();
    EXPECT_TRUE(cluster_.WaitForStatus([](const v1::StatusResponse& status) {
      return status.members_size() == 3 && status.progress().account().trained() > 0;
    }));
    observer_ = Connect(CoordinatorAddress(&cluster_));
  }
  // The oldest heartbeat of any member while `period` passes.
  double OldestHeartbeat(absl::Duration period) {
    double oldest = 0;
    for (const absl::Time end = absl::Now() + period; absl::Now() < end; absl::SleepFor(absl::Milliseconds(50))) {
      const auto status = GetStatus(observer_.get());
      EXPECT_TRUE(status.ok()) << status.status();
      if (!status.ok()) break;
      EXPECT_EQ(status->members_size(), 3);
      for (const v1::MemberStatus& member : status->members()) {
        oldest = std::max(oldest, member.seconds_since_heartbeat());
      }
    }
    return oldest;
  }

  Cluster cluster_{{"total_steps=1000000000", "coordinator.heartbeat_seconds=1", "coordinator.lease_seconds=5"}};
  std::unique_ptr<Running> actors_[2];
  std::unique_ptr<v1::Coordinator::Stub> observer_;
};

TEST_F(FaultRow24, ThousandsOfIdleConnectionsDelayNobody) {
  const std::string address = CoordinatorAddress(&cluster_);
  const size_t memory = ResidentBytes(cluster_.coordinator().pid());
  const IdleConnections idle(ParseHostPort(address)->port, 3000);
  EXPECT_EQ(idle.size(), 3000u);
  EXPECT_LT(OldestHeartbeat(absl::Seconds(3)), 2 * kHeartbeatSeconds);  // Its period, and H late.
  const size_t now = ResidentBytes(cluster_.coordinator().pid());
  printf("3000 idle connections: %.1f MiB more\n",
         (static_cast<double>(now) - static_cast<double>(memory)) / (1 << 20));
  EXPECT_LT(now, memory + (size_t{64} << 20));
  // There is room for those who have something to say.
  const auto client = Connect(address);
  EXPECT_TRUE(GetStatus(client.get()).ok());
  const auto actor = cluster_.StartActor();
  EXPECT_TRUE(cluster_.WaitForStatus([](const v1::StatusResponse& status) { return status.members_size() == 4; }));
}

// gRPC's own listener would stop for good.
TEST_F(FaultRow24, WhoHasRunOutOfFilesAcceptsAgainWhenThereAreSome) {
  Running coordinator("/bin/sh", {"-c", "ulimit -n 256; exec \"$SKEIN_BIN/skein-coordinator\" --listen 127.0.0.1:0"});
  const std::string address = coordinator.WaitForOutput("coordinator listening grpc=(\\S+)");
  const auto member = Connect(address);
  EXPECT_TRUE(GetStatus(member.get()).ok());
  {
    const IdleConnections idle(ParseHostPort(address)->port, 400);
    EXPECT_TRUE(GetStatus(member.get()).ok());  // Who was here before is served.
    EXPECT_NE(coordinator.WaitForOutput("(more than 192 connections)"), "");
  }
  const auto client = Connect(address);
  EXPECT_TRUE(WaitUntil([&] { return GetStatus(client.get()).ok(); }));
}

TEST_F(FaultRow24, AFloodOfCallsFromOneClientIsCutToItsQuota) {
  const auto flooder = Connect(CoordinatorAddress(&cluster_));
  std::atomic<bool> stop{false};
  std::atomic<int> answered{0}, refused{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < 8; ++i) {
    threads.emplace_back([&] {
      while (!stop) {
        const absl::Status status = GetStatus(flooder.get()).status();
        ++(status.ok() ? answered : refused);
        // Whose calls are refused again and again is disconnected in the end.
        EXPECT_TRUE(status.ok() || absl::IsResourceExhausted(status) || absl::IsUnavailable(status)) << status;
      }
    });
  }
  // Until the flood has used up its burst and been refused a while.
  EXPECT_TRUE(WaitUntil([&] { return refused > 1000; }, absl::Minutes(2)));
  EXPECT_LT(OldestHeartbeat(absl::Seconds(3)), 2 * kHeartbeatSeconds);
  stop = true;
  for (std::thread& thread : threads) thread.join();
  const double counted = MetricOf(cluster_.coordinator().Output(),
                                  "skein_coordinator_refusals_total{call=\"GetStatus\",code=\"resource_exhausted\"}");
  // The others were refused before the coordinator saw them, or with their connection.
  EXPECT_LE(counted, refused);
  // Everybody is still here.
  const auto status = cluster_.Status();
  ASSERT_TRUE(status.ok());
  EXPECT_EQ(status->members_size(), 3);
}

TEST_F(FaultRow24, OneConnectionOpensSoManyStreamsAndNoMore) {
  const auto stub = v1::Learner::NewStub(OpenChannel(LearnerAddress(&cluster_)));
  struct Call {
    grpc::ClientContext context;
    std::unique_ptr<grpc::ClientReaderWriter<v1::CollectRequest, v1::CollectResponse>> stream;
  };
  std::vector<std::unique_ptr<Call>> calls;
  for (int i = 0; i < kMaxCallsPerConnection; ++i) {
    calls.push_back(std::make_unique<Call>());
    calls.back()->stream = stub->Collect(&calls.back()->context);
  }
  Call one_more;
  one_more.context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(1));
  one_more.stream = stub->Collect(&one_more.context);
  EXPECT_EQ(one_more.stream->Finish().error_code(), grpc::StatusCode::DEADLINE_EXCEEDED);
  // Others are served at once, and training goes on.
  Stranger stranger(LearnerAddress(&cluster_));
  EXPECT_TRUE(stranger.Enter(1));
  uint64_t first = 0;
  EXPECT_TRUE(cluster_.WaitForStatus([&](const v1::StatusResponse& status) {
    const uint64_t trained = status.progress().account().trained();
    if (first == 0) first = trained;
    return trained > first + 2048;
  }));
  for (const auto& call : calls) {
    call->context.TryCancel();
    call->stream->Finish();
  }
}

// It joins, is welcomed and beats like any other, and never reads a policy.
TEST_F(FaultRow24, AMemberThatReadsNoPoliciesHoldsNobodyUp) {
  Stranger member(LearnerAddress(&cluster_), CoordinatorAddress(&cluster_));
  ASSERT_TRUE(member.Enter(1));
  const v1::Hello hello = member.Hello(1).hello();
  v1::SubscribePolicyRequest request;
  request.set_run_id(hello.run_id());
  request.set_actor_id(hello.actor_id());
  request.set_generation(hello.generation());
  const auto stub = v1::Learner::NewStub(OpenChannel(LearnerAddress(&cluster_)));
  grpc::ClientContext context;
  const auto policies = stub->SubscribePolicy(&context, request);
  v1::PolicySnapshot first;
  ASSERT_TRUE(policies->Read(&first));  // It has a stream.

  const size_t memory = ResidentBytes(cluster_.learner().pid());
  uint64_t begin = 0;
  EXPECT_TRUE(cluster_.WaitForStatus([&](const v1::StatusResponse& status) {
    const uint64_t version = status.progress().policy_version();
    if (begin == 0) begin = version;
    return version > begin + 200;
  }));
  // Of 200 policies of some 40 kB it has been sent what the connection holds; the others were left out.
  EXPECT_LT(ResidentBytes(cluster_.learner().pid()), memory + (size_t{16} << 20));
  const auto status = cluster_.Status();
  ASSERT_TRUE(status.ok());
  EXPECT_EQ(status->members_size(), 4);
  EXPECT_EQ(status->progress().account().lost(), 0u);
  context.TryCancel();
  policies->Finish();
}

TEST_F(FaultRow24, TheControlPlaneTakesNoLargeMessages) {
  const auto stub = Connect(CoordinatorAddress(&cluster_));
  const size_t memory = ResidentBytes(cluster_.coordinator().pid());
  v1::JoinRequest request;
  request.set_host(std::string(2 << 20, 'x'));
  for (int i = 0; i < 50; ++i) {
    grpc::ClientContext context;
    v1::JoinResponse response;
    context.set_wait_for_ready(true);
    // A caller that goes on is cut off, too.
    EXPECT_THAT(stub->Join(&context, request, &response).error_code(),
                testing::AnyOf(grpc::StatusCode::RESOURCE_EXHAUSTED, grpc::StatusCode::UNAVAILABLE));
  }
  EXPECT_LT(ResidentBytes(cluster_.coordinator().pid()), memory + (size_t{32} << 20));  // Of the 100 MiB sent.
}

}  // namespace
}  // namespace skein
