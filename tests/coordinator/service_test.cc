// SPDX-License-Identifier: Apache-2.0
#include "coordinator/service.h"

#include <chrono>
#include <future>
#include <sstream>
#include <thread>

#include "base/net/grpc_transport.h"
#include "gmock/gmock.h"
#include "grpcpp/client_context.h"
#include "gtest/gtest.h"
#include "spdlog/sinks/ostream_sink.h"
#include "spdlog/spdlog.h"

namespace skein {
namespace {

using testing::ContainsRegex;
using testing::ElementsAre;
using testing::HasSubstr;

// The service over real sockets. Leases of 60 s, so that only a test that wants it sees one end.
class ServiceTest : public testing::Test {
 protected:
  explicit ServiceTest(double lease_seconds = 60) : metrics_(&registry_) {
    CoordinatorState::Options options;
    options.run_id = "run7";
    options.start_epoch = 1;
    v1::CoordinatorConfig* config = options.config.mutable_coordinator();
    config->set_lease_seconds(lease_seconds);
    config->set_heartbeat_seconds(lease_seconds / 4);
    config->set_barrier_timeout_seconds(60);
    service_ = std::make_unique<CoordinatorService>(options, AddressRules(), &metrics_);
    server_ = *StartGrpcServer("127.0.0.1:0", service_.get(), &port_);
    stub_ = v1::Coordinator::NewStub(OpenChannel("127.0.0.1:" + std::to_string(port_)));
  }
  ~ServiceTest() override {
    service_->Shutdown();
    server_->Shutdown(std::chrono::system_clock::now());
  }

  absl::StatusOr<v1::JoinResponse> TryJoin(const v1::JoinRequest& request) {
    grpc::ClientContext context;
    v1::JoinResponse response;
    absl::Status status = FromGrpc(stub_->Join(&context, request, &response));
    if (!status.ok()) return status;
    return response;
  }
  v1::JoinResponse Join(v1::Role role, uint32_t rank = 0) {
    v1::JoinRequest request;
    request.set_protocol_major(kProtocolMajor);
    request.set_role(role);
    request.set_rank(rank);
    request.set_ranks(64);
    request.set_data_address(":7000");
    request.set_metrics_address(":9100");
    absl::StatusOr<v1::JoinResponse> joined = TryJoin(request);
    EXPECT_TRUE(joined.ok()) << joined.status();
    return joined.value_or(v1::JoinResponse());
  }
  absl::StatusOr<v1::BarrierResponse> Arrive(const v1::JoinResponse& member, double timeout_seconds,
                                             absl::Duration call_limit = absl::Seconds(30)) {
    grpc::ClientContext context;
    context.set_deadline(absl::ToChronoTime(absl::Now() + call_limit));
    v1::BarrierRequest request;
    request.set_member_id(member.member_id());
    request.set_member_generation(member.generation());
    request.set_name("start");
    request.set_barrier_generation(1);
    request.set_timeout_seconds(timeout_seconds);
    v1::BarrierResponse response;
    absl::Status status = FromGrpc(stub_->ArriveAtBarrier(&context, request, &response));
    if (!status.ok()) return status;
    return response;
  }
  auto ArriveAside(const v1::JoinResponse& member, double timeout_seconds) {
    return std::async(std::launch::async, [=, this] { return Arrive(member, timeout_seconds); });
  }
  // How many calls wait at barriers now.
  double Waiting() {
    for (const prometheus::MetricFamily& family : registry_.Collect()) {
      if (family.name == "skein_coordinator_barrier_waiters") return family.metric[0].gauge.value;
    }
    return -1;
  }
  // Of the child of family `name` that has `value` as the value of its label.
  double ValueOf(const std::string& name, const std::string& value) {
    for (const prometheus::MetricFamily& family : registry_.Collect()) {
      if (family.name != name) continue;
      for (const prometheus::ClientMetric& metric : family.metric) {
        if (metric.label[0].value == value) return metric.gauge.value + metric.counter.value;
      }
    }
    return -1;
  }
  // How many barrier waits have ended, as the metrics tell.
  uint64_t EndedWaits() {
    for (const prometheus::MetricFamily& family : registry_.Collect()) {
      if (family.name == "skein_coordinator_barrier_wait_seconds") return family.metric[0].histogram.sample_count;
    }
    return 0;
  }

  prometheus::Registry registry_;
  CoordinatorMetrics metrics_;
  std::unique_ptr<CoordinatorService> service_;
  std::unique_ptr<grpc::Server> server_;
  std::unique_ptr<v1::Coordinator::Stub> stub_;
  int port_ = 0;
};

class ShortLeaseServiceTest : public ServiceTest {
 protected:
  ShortLeaseServiceTest() : ServiceTest(0.1) {}
};

template <typename Condition>
bool WaitUntil(Condition condition, absl::Duration limit = absl::Seconds(20)) {
  const absl::Time deadline = absl::Now() + limit;
  while (!condition()) {
    if (absl::Now() > deadline) return false;
    absl::SleepFor(absl::Milliseconds(1));
  }
  return true;
}

TEST_F(ServiceTest, JoinFillsInTheHostTheCallCameFrom) {
  Join(v1::ROLE_LEARNER);
  EXPECT_EQ(Join(v1::ROLE_ACTOR).learner_address(), "127.0.0.1:7000");
  grpc::ClientContext context;
  v1::StatusResponse status;
  ASSERT_TRUE(stub_->GetStatus(&context, v1::GetStatusRequest(), &status).ok());
  ASSERT_EQ(status.members_size(), 2);
  EXPECT_EQ(status.members(0).metrics_address(), "127.0.0.1:9100");
  EXPECT_EQ(status.members(0).host(), "127.0.0.1");
  EXPECT_EQ(status.run_id(), "run7");
}

TEST_F(ServiceTest, TheHostAMemberGivesIsCleanedOfControlCharacters) {
  v1::JoinRequest request;
  request.set_protocol_major(kProtocolMajor);
  request.set_role(v1::ROLE_LEARNER);
  request.set_ranks(1);
  request.set_data_address(":7000");
  request.set_host("node\x1b[2J\n1");
  ASSERT_TRUE(TryJoin(request).ok());
  EXPECT_EQ(service_->Status().members(0).host(), "node [2J 1");
}

TEST_F(ServiceTest, AnnouncedHostStandsInForLoopback) {
  CoordinatorState::Options options;
  options.run_id = "run7";
  options.config.mutable_coordinator()->set_lease_seconds(60);
  prometheus::Registry registry;
  CoordinatorMetrics metrics(&registry);
  CoordinatorService service(options, {.announced_host = "head"}, &metrics);
  int port = 0;
  std::unique_ptr<grpc::Server> server = *StartGrpcServer("127.0.0.1:0", &service, &port);
  stub_ = v1::Coordinator::NewStub(OpenChannel("127.0.0.1:" + std::to_string(port)));
  Join(v1::ROLE_LEARNER);
  EXPECT_EQ(Join(v1::ROLE_ACTOR).learner_address(), "head:7000");
  server->Shutdown(std::chrono::system_clock::now());
}

TEST_F(ServiceTest, RefusalsCarryTheirCode) {
  v1::JoinRequest request;
  request.set_protocol_major(9);
  request.set_role(v1::ROLE_ACTOR);
  EXPECT_EQ(TryJoin(request).status().code(), absl::StatusCode::kFailedPrecondition);
  request.set_protocol_major(kProtocolMajor);
  request.set_metrics_address("nonsense");
  EXPECT_EQ(TryJoin(request).status().code(), absl::StatusCode::kInvalidArgument);

  grpc::ClientContext context;
  v1::HeartbeatRequest beat;
  beat.set_member_id("actor-1");
  v1::HeartbeatResponse answer;
  EXPECT_EQ(stub_->Heartbeat(&context, beat, &answer).error_code(), grpc::StatusCode::NOT_FOUND);
}

TEST_F(ServiceTest, TextsThatAreTooLongAreRefusedAndChangeNothing) {
  v1::JoinRequest request;
  request.set_protocol_major(kProtocolMajor);
  request.set_role(v1::ROLE_ACTOR);
  request.set_host(std::string(1'000'000, 'x'));
  absl::Status status = TryJoin(request).status();
  EXPECT_TRUE(absl::IsInvalidArgument(status));
  EXPECT_EQ(status.message(), "host has 1000000 bytes, and may have 255: give a shorter one");
  request.clear_host();
  request.set_metrics_address(std::string(1000, 'x') + ":9100");
  EXPECT_TRUE(absl::IsInvalidArgument(TryJoin(request).status()));
  EXPECT_EQ(ValueOf("skein_coordinator_refusals_total", "Join"), 2);
  EXPECT_EQ(service_->Status().members_size(), 0);
  const std::string long_id(1000, 'x');
  grpc::ClientContext beats, leaves, arrives, drains;
  v1::HeartbeatRequest beat;
  beat.set_member_id(long_id);
  v1::HeartbeatResponse beaten;
  EXPECT_EQ(stub_->Heartbeat(&beats, beat, &beaten).error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  v1::LeaveRequest leave;
  leave.set_member_id(long_id);
  v1::LeaveResponse left;
  EXPECT_EQ(stub_->Leave(&leaves, leave, &left).error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  v1::BarrierRequest arrive;
  arrive.set_member_id(long_id);
  v1::BarrierResponse arrived;
  EXPECT_EQ(stub_->ArriveAtBarrier(&arrives, arrive, &arrived).error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  v1::DrainRequest drain;
  drain.set_member_id(long_id);
  v1::DrainResponse drained;
  EXPECT_EQ(stub_->Drain(&drains, drain, &drained).error_code(), grpc::StatusCode::INVALID_ARGUMENT);
}

// A report is taken, whatever it says, and the status of all stays one that can be read.
TEST_F(ServiceTest, HostileReportsLeaveAStatusThatCanBeRead) {
  std::vector<v1::JoinResponse> members;
  for (int i = 0; i < 40; ++i) members.push_back(Join(v1::ROLE_ACTOR));
  std::string error;
  while (error.size() < 900'000) error += "\xe2\x82\xac";
  for (const v1::JoinResponse& member : members) {
    grpc::ClientContext context;
    v1::HeartbeatRequest beat;
    beat.set_member_id(member.member_id());
    beat.set_generation(member.generation());
    beat.mutable_report()->set_last_error(error);
    v1::HeartbeatResponse answer;
    ASSERT_TRUE(stub_->Heartbeat(&context, beat, &answer).ok());
  }
  grpc::ClientContext context;
  v1::StatusResponse status;
  const grpc::Status asked = stub_->GetStatus(&context, v1::GetStatusRequest(), &status);
  ASSERT_TRUE(asked.ok()) << asked.error_message();
  EXPECT_EQ(status.members_size(), 40);
  EXPECT_LT(status.ByteSizeLong(), 100'000u);
}

TEST_F(ServiceTest, RefusedJoinsAreLoggedRarely) {
  std::ostringstream said;
  const auto logger = spdlog::default_logger();
  spdlog::set_default_logger(
      std::make_shared<spdlog::logger>("test", std::make_shared<spdlog::sinks::ostream_sink_mt>(said)));
  v1::JoinRequest request;
  request.set_protocol_major(9);
  for (int i = 0; i < 3; ++i) EXPECT_FALSE(TryJoin(request).ok());
  EXPECT_EQ(ValueOf("skein_coordinator_refusals_total", "Join"), 3);
  spdlog::set_default_logger(logger);
  EXPECT_THAT(said.str(), ContainsRegex("refused a join from [^ ]+: protocol 9.0 does not match"));
  EXPECT_EQ(said.str().find("refused a join"), said.str().rfind("refused a join"));
}

TEST_F(ServiceTest, HeartbeatAndLeaveCarryTheRunState) {
  v1::JoinResponse learner = Join(v1::ROLE_LEARNER);
  grpc::ClientContext context;
  v1::HeartbeatRequest beat;
  beat.set_member_id(learner.member_id());
  beat.set_generation(learner.generation());
  beat.mutable_progress()->set_state(v1::RUN_STATE_TRAINING);
  v1::HeartbeatResponse answer;
  ASSERT_TRUE(stub_->Heartbeat(&context, beat, &answer).ok());
  EXPECT_EQ(answer.run_state(), v1::RUN_STATE_TRAINING);

  for (int i = 0; i < 2; ++i) {  // Leaving twice is OK.
    grpc::ClientContext leave_context;
    v1::LeaveRequest leave;
    leave.set_member_id(learner.member_id());
    leave.set_generation(learner.generation());
    leave.mutable_progress()->set_state(v1::RUN_STATE_FINISHED);
    v1::LeaveResponse left;
    ASSERT_TRUE(stub_->Leave(&leave_context, leave, &left).ok());
  }
  EXPECT_EQ(service_->Status().state(), v1::RUN_STATE_FINISHED);
  EXPECT_EQ(service_->Status().leaves(), 1u);
}

TEST_F(ServiceTest, DrainReachesTheActorAndRefusalsCarryTheirCode) {
  const v1::JoinResponse actor = Join(v1::ROLE_ACTOR);
  const auto drain = [&](const std::string& member) {
    grpc::ClientContext context;
    v1::DrainRequest request;
    request.set_member_id(member);
    v1::DrainResponse response;
    return FromGrpc(stub_->Drain(&context, request, &response));
  };
  EXPECT_TRUE(drain(actor.member_id()).ok());
  EXPECT_TRUE(absl::IsNotFound(drain("actor-9")));
  EXPECT_EQ(ValueOf("skein_coordinator_refusals_total", "Drain"), 1);
  grpc::ClientContext context;
  v1::HeartbeatRequest beat;
  beat.set_member_id(actor.member_id());
  beat.set_generation(actor.generation());
  v1::HeartbeatResponse answer;
  ASSERT_TRUE(stub_->Heartbeat(&context, beat, &answer).ok());
  EXPECT_TRUE(answer.drain());
}

TEST_F(ServiceTest, HistoryBeginsAtOnce) {
  EXPECT_TRUE(WaitUntil([&] { return service_->HistoryText(10).find("\"points\":1") != std::string::npos; }));
}

TEST_F(ServiceTest, BarrierOpensForAllWaiters) {
  v1::JoinResponse a = Join(v1::ROLE_LEARNER, 0), b = Join(v1::ROLE_LEARNER, 1), c = Join(v1::ROLE_LEARNER, 2);
  auto first = ArriveAside(a, 0), second = ArriveAside(b, 0);
  absl::StatusOr<v1::BarrierResponse> third = Arrive(c, 0);
  ASSERT_TRUE(third.ok()) << third.status();
  EXPECT_THAT(third->members(), ElementsAre("learner-0", "learner-1", "learner-2"));
  EXPECT_TRUE(first.get().ok());
  EXPECT_TRUE(second.get().ok());
  EXPECT_EQ(EndedWaits(), 3u);
}

TEST_F(ServiceTest, BarrierCarriesPayloadsAndMovesAreCounted) {
  v1::JoinResponse a = Join(v1::ROLE_LEARNER, 0), b = Join(v1::ROLE_ACTOR), c = Join(v1::ROLE_ACTOR);
  Join(v1::ROLE_LEARNER, 1);
  EXPECT_EQ(service_->Status().actor_moves(), 1u);
  EXPECT_EQ(ValueOf("skein_coordinator_actor_moves_total", "balance"), 1);
  EXPECT_EQ(ValueOf("skein_coordinator_actor_moves_total", "starvation"), 0);
  EXPECT_EQ(ValueOf("skein_coordinator_learner_runners", "learner-0"), 1);
  EXPECT_EQ(ValueOf("skein_coordinator_learner_runners", "learner-1"), 1);
  grpc::ClientContext context;
  v1::BarrierRequest request;
  request.set_member_id(a.member_id());
  request.set_member_generation(a.generation());
  request.set_name("rendezvous");
  request.set_barrier_generation(1);
  request.set_participants(1);
  request.set_payload("here");
  v1::BarrierResponse response;
  ASSERT_TRUE(stub_->ArriveAtBarrier(&context, request, &response).ok());
  EXPECT_THAT(response.members(), ElementsAre("learner-0"));
  EXPECT_THAT(response.payloads(), ElementsAre("here"));
}

// Those who are no members, too; and their other calls are not counted with these.
TEST_F(ServiceTest, OneConnectionArrivesAtBarriersSoOftenAndNoMore) {
  CoordinatorService service({}, AddressRules(), &metrics_, {}, nullptr, {.per_second = 0.001, .burst = 3});
  int port = 0;
  auto server = *StartGrpcServer("127.0.0.1:0", &service, &port);
  const auto arrive = [](v1::Coordinator::Stub* stub) {
    grpc::ClientContext context;
    v1::BarrierRequest request;
    request.set_member_id("learner-9");
    request.set_name("start");
    v1::BarrierResponse response;
    return FromGrpc(stub->ArriveAtBarrier(&context, request, &response));
  };
  const auto stub = v1::Coordinator::NewStub(OpenChannel("127.0.0.1:" + std::to_string(port)));
  const auto another = v1::Coordinator::NewStub(OpenChannel("127.0.0.1:" + std::to_string(port)));
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(absl::IsFailedPrecondition(arrive(stub.get())));
  EXPECT_TRUE(absl::IsResourceExhausted(arrive(stub.get())));
  EXPECT_TRUE(absl::IsFailedPrecondition(arrive(another.get())));
  grpc::ClientContext context;
  v1::StatusResponse status;
  EXPECT_TRUE(stub->GetStatus(&context, v1::GetStatusRequest(), &status).ok());
  service.Shutdown();
  server->Shutdown(std::chrono::system_clock::now());
}

TEST_F(ServiceTest, BarrierTimeoutComesFromTheTimer) {
  v1::JoinResponse a = Join(v1::ROLE_LEARNER, 0);
  Join(v1::ROLE_LEARNER, 1);
  absl::Status status = Arrive(a, 0.05).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_THAT(std::string(status.message()), HasSubstr("absent: learner-1"));
}

TEST_F(ServiceTest, ACancelledCallIsNoLongerWaiting) {
  v1::JoinResponse a = Join(v1::ROLE_LEARNER, 0), b = Join(v1::ROLE_LEARNER, 1);
  EXPECT_EQ(Arrive(a, 60, absl::Milliseconds(50)).status().code(), absl::StatusCode::kDeadlineExceeded);
  ASSERT_TRUE(WaitUntil([this] { return EndedWaits() == 1; }));
  absl::Status status = Arrive(b, 0.05).status();
  EXPECT_THAT(std::string(status.message()), HasSubstr("absent: learner-0"));
}

TEST_F(ServiceTest, ShutdownEndsWaitersAndRefusesNewOnes) {
  v1::JoinResponse a = Join(v1::ROLE_LEARNER, 0);
  Join(v1::ROLE_LEARNER, 1);
  auto waiting = ArriveAside(a, 60);
  ASSERT_TRUE(WaitUntil([this] { return Waiting() == 1; }));
  service_->Shutdown();
  EXPECT_EQ(waiting.get().status().code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(Arrive(a, 60).status().code(), absl::StatusCode::kUnavailable);
}

TEST_F(ShortLeaseServiceTest, TheTimerExpelsASilentMember) {
  Join(v1::ROLE_ACTOR);
  EXPECT_TRUE(WaitUntil([this] { return service_->Status().expirations() == 1; }));
  EXPECT_EQ(service_->Status().members_size(), 0);
}

// Many members meeting again and again, some of them giving up: every call must end.
TEST_F(ServiceTest, EveryCallEndsUnderChurn) {
  constexpr int kMembers = 8;
  std::vector<v1::JoinResponse> members;
  for (uint32_t rank = 0; rank < kMembers; ++rank) members.push_back(Join(v1::ROLE_LEARNER, rank));
  std::vector<std::future<void>> done;
  for (int i = 0; i < kMembers; ++i) {
    done.push_back(std::async(std::launch::async, [this, i, &members] {
      for (int round = 0; round < 20; ++round) {
        Arrive(members[i], 0.02, absl::Milliseconds(1 + (7 * i + 3 * round) % 30)).status().IgnoreError();
      }
    }));
  }
  for (std::future<void>& thread : done) thread.get();
  EXPECT_TRUE(WaitUntil([this] { return service_->Status().members_size() == kMembers; }));
}

}  // namespace
}  // namespace skein
