// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "base/net/grpc_transport.h"
#include "gtest/gtest.h"
#include "skein/v1/coordinator_service.grpc.pb.h"

namespace skein {

// For what must happen.
inline constexpr absl::Duration kPatience = absl::Seconds(10);

// A coordinator that answers as the test tells it, and remembers what it was asked.
class FakeCoordinator : public v1::Coordinator::Service {
 public:
  struct State {
    // What it answers. A status that is not OK is given once, then OK again.
    std::vector<grpc::Status> join_errors;
    std::vector<grpc::Status> heartbeat_errors;
    std::vector<grpc::Status> barrier_errors;
    std::string learner_address = "127.0.0.1:7";
    v1::RunState run_state = v1::RUN_STATE_STARTING;
    double heartbeat_seconds = 0.002;
    bool drain = false;
    bool hold_joins = false;
    bool hold_heartbeats = false;
    bool hold_barriers = false;
    bool hold_statuses = false;
    double lease_seconds = 5;
    // What it was asked.
    std::vector<v1::JoinRequest> joins;
    std::vector<v1::HeartbeatRequest> heartbeats;
    std::vector<v1::BarrierRequest> barriers;
    std::vector<v1::LeaveRequest> leaves;
    int statuses = 0;
    absl::Duration status_timeout;          // That the newest call for the status had left when it came.
    std::set<std::string> heartbeats_from;  // Connections.
  };

  explicit FakeCoordinator(const std::string& address = "127.0.0.1:0") {
    auto server = StartGrpcServer(address, this, &port_);
    EXPECT_TRUE(server.ok()) << server.status();
    server_ = *std::move(server);
  }
  ~FakeCoordinator() override {
    Change([](State* state) {
      state->hold_joins = state->hold_heartbeats = false;
      state->hold_barriers = state->hold_statuses = false;
    });
    server_->Shutdown();
  }

  std::string address() const { return JoinHostPort("127.0.0.1", port_); }

  void Change(const std::function<void(State*)>& change) {
    absl::MutexLock lock(&mu_);
    change(&state_);
  }
  // Fails the test unless `condition` comes true.
  State WaitUntil(const std::function<bool(const State&)>& condition) {
    absl::MutexLock lock(&mu_);
    const auto holds = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) { return condition(state_); };
    EXPECT_TRUE(mu_.AwaitWithTimeout(absl::Condition(&holds), kPatience));
    return state_;
  }

 private:
  static grpc::Status TakeFirst(std::vector<grpc::Status>* errors) {
    if (errors->empty()) return grpc::Status::OK;
    const grpc::Status first = errors->front();
    errors->erase(errors->begin());
    return first;
  }
  void WaitWhile(bool* held) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    const auto released = [held] { return !*held; };
    mu_.Await(absl::Condition(&released));
  }

  grpc::Status Join(grpc::ServerContext*, const v1::JoinRequest* request, v1::JoinResponse* response) override {
    absl::MutexLock lock(&mu_);
    state_.joins.push_back(*request);
    WaitWhile(&state_.hold_joins);
    if (grpc::Status error = TakeFirst(&state_.join_errors); !error.ok()) return error;
    ++generation_;
    response->set_member_id(absl::StrCat("actor-", generation_));
    response->set_generation(generation_);
    response->set_run_id("run-1");
    response->mutable_config()->set_seed(40 + generation_);
    response->mutable_config()->mutable_coordinator()->set_barrier_timeout_seconds(7);
    response->set_lease_seconds(state_.lease_seconds);
    response->set_heartbeat_seconds(state_.heartbeat_seconds);
    response->set_learner_address(state_.learner_address);
    return grpc::Status::OK;
  }

  grpc::Status Heartbeat(grpc::ServerContext* context, const v1::HeartbeatRequest* request,
                         v1::HeartbeatResponse* response) override {
    absl::MutexLock lock(&mu_);
    state_.heartbeats.push_back(*request);
    state_.heartbeats_from.insert(context->peer());
    WaitWhile(&state_.hold_heartbeats);
    if (grpc::Status error = TakeFirst(&state_.heartbeat_errors); !error.ok()) return error;
    response->set_run_state(state_.run_state);
    response->set_learner_address(state_.learner_address);
    response->set_drain(state_.drain);
    return grpc::Status::OK;
  }

  grpc::Status Leave(grpc::ServerContext*, const v1::LeaveRequest* request, v1::LeaveResponse*) override {
    absl::MutexLock lock(&mu_);
    state_.leaves.push_back(*request);
    return grpc::Status::OK;
  }

  grpc::Status GetStatus(grpc::ServerContext* context, const v1::GetStatusRequest*,
                         v1::StatusResponse* response) override {
    absl::MutexLock lock(&mu_);
    ++state_.statuses;
    state_.status_timeout = absl::FromChrono(context->deadline()) - absl::Now();
    WaitWhile(&state_.hold_statuses);
    response->set_run_id("run-1");
    return grpc::Status::OK;
  }

  grpc::Status ArriveAtBarrier(grpc::ServerContext*, const v1::BarrierRequest* request,
                               v1::BarrierResponse* response) override {
    absl::MutexLock lock(&mu_);
    state_.barriers.push_back(*request);
    WaitWhile(&state_.hold_barriers);
    if (grpc::Status error = TakeFirst(&state_.barrier_errors); !error.ok()) return error;
    response->add_members("learner-1");
    response->add_members(request->member_id());
    response->add_payloads("from learner-1");
    response->add_payloads(request->payload());
    return grpc::Status::OK;
  }

  absl::Mutex mu_;
  State state_ ABSL_GUARDED_BY(mu_);
  uint64_t generation_ ABSL_GUARDED_BY(mu_) = 0;
  int port_ = 0;
  std::unique_ptr<grpc::Server> server_;
};

}  // namespace skein
