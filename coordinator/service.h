// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "coordinator/call_gate.h"
#include "coordinator/coordinator_state.h"
#include "coordinator/history.h"
#include "coordinator/membership_log.h"
#include "coordinator/metrics.h"
#include "coordinator/state_writer.h"
#include "skein/v1/coordinator_service.grpc.pb.h"

namespace skein {

// CoordinatorState behind gRPC and the real clock.   call -> event -> effects -> finished calls, log, metrics
// No thread waits for a barrier: its callers are reactors that an effect finishes. One thread sleeps until the next
// deadline, and adds to the history once a second. Thread-safe. Must outlive the server it is registered with.
class CoordinatorService final : public v1::Coordinator::CallbackService {
 public:
  // `metrics` must outlive the service. `announced_host` is the address of members that called over loopback and gave
  // no host of their own (they are where the coordinator is); empty = the loopback address.
  // `on_report` hears of each change that the metrics hear of, on the thread that made it. `store`, if there is one,
  // must outlive the service: what a successor must know is written there, and calls are refused with UNAVAILABLE while
  // it does not let this coordinator serve. `arrivals`: how many from a connection at barriers. A learner comes once or
  // twice in each iteration, and waits for the answer before it comes again.
  CoordinatorService(CoordinatorState::Options options, std::string announced_host, CoordinatorMetrics* metrics,
                     std::function<void(const v1::StatusResponse&)> on_report = {}, StateStore* store = nullptr,
                     const CallQuota::Options& arrivals = {.per_second = 5000, .burst = 25000});
  ~CoordinatorService() override;

  // Ends all waiting calls with UNAVAILABLE, refuses new barriers, joins the timer thread. Idempotent.
  void Shutdown() ABSL_LOCKS_EXCLUDED(mu_);

  v1::StatusResponse Status() ABSL_LOCKS_EXCLUDED(mu_);
  // As HistoryJson(), of the last `count` points.
  std::string HistoryText(size_t count) ABSL_LOCKS_EXCLUDED(history_mu_);

  grpc::ServerUnaryReactor* Join(grpc::CallbackServerContext* context, const v1::JoinRequest* request,
                                 v1::JoinResponse* response) override;
  grpc::ServerUnaryReactor* Heartbeat(grpc::CallbackServerContext* context, const v1::HeartbeatRequest* request,
                                      v1::HeartbeatResponse* response) override;
  grpc::ServerUnaryReactor* Leave(grpc::CallbackServerContext* context, const v1::LeaveRequest* request,
                                  v1::LeaveResponse* response) override;
  grpc::ServerUnaryReactor* ArriveAtBarrier(grpc::CallbackServerContext* context, const v1::BarrierRequest* request,
                                            v1::BarrierResponse* response) override;
  grpc::ServerUnaryReactor* Drain(grpc::CallbackServerContext* context, const v1::DrainRequest* request,
                                  v1::DrainResponse* response) override;
  grpc::ServerUnaryReactor* GetStatus(grpc::CallbackServerContext* context, const v1::GetStatusRequest* request,
                                      v1::StatusResponse* response) override;

 private:
  class Waiter;
  struct Outcome;

  MonotonicTime Now() const;
  // CheckServing(), then CallGate::Admit().
  template <typename Request>
  absl::Status Admit(const grpc::CallbackServerContext& context, const Request& request, const char* call);
  absl::Status CheckServing() const;  // Unavailable: this is not (any more) the coordinator that may answer.
  absl::StatusOr<v1::JoinRequest> Complete(const v1::JoinRequest& request, const std::string& peer) const;
  // Takes the waiters that `effects` ends out of waiters_; Carry(...) finishes them, without the lock.
  Outcome Take(Effects effects) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Waiting callers are told that this is not the primary if `written` says so.
  void Carry(Outcome outcome, const absl::Status& written) ABSL_LOCKS_EXCLUDED(mu_);
  // Keeps what the outcome has for a successor, then Carry(...): here, or on the writer's thread.
  void KeepAndCarry(Outcome outcome) ABSL_LOCKS_EXCLUDED(mu_);
  void NoteWrite(const absl::Status& status);
  void CancelWaiter(WaiterId id) ABSL_LOCKS_EXCLUDED(mu_);
  void Report() ABSL_LOCKS_EXCLUDED(mu_);
  void RunTimer() ABSL_LOCKS_EXCLUDED(mu_, history_mu_);
  void AddToHistory() ABSL_LOCKS_EXCLUDED(mu_, history_mu_);

  const std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
  const std::string announced_host_;
  CoordinatorMetrics* const metrics_;
  const std::function<void(const v1::StatusResponse&)> on_report_;

  CallGate gate_;
  MembershipLog membership_log_;

  absl::Mutex mu_;
  CoordinatorState state_ ABSL_GUARDED_BY(mu_);
  std::map<WaiterId, Waiter*> waiters_ ABSL_GUARDED_BY(mu_);  // Each owned by its call; alive while in here.
  WaiterId last_waiter_ ABSL_GUARDED_BY(mu_) = 0;
  bool stopping_ ABSL_GUARDED_BY(mu_) = false;

  absl::Mutex history_mu_;  // Never held together with mu_.
  History history_ ABSL_GUARDED_BY(history_mu_);

  std::atomic<int> outcomes_ = 0;  // Not carried yet.
  std::atomic<bool> report_due_ = false;

  StateStore* const store_;
  absl::Status last_write_;              // Of the writer's thread.
  std::unique_ptr<StateWriter> writer_;  // Constant after construction; nullptr without a store.
  std::thread timer_;
};

}  // namespace skein
