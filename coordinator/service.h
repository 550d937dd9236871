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
#include "coordinator/kept_history.h"
#include "coordinator/membership_log.h"
#include "coordinator/metrics.h"
#include "coordinator/peer_address.h"
#include "coordinator/state_writer.h"
#include "skein/v1/coordinator_service.grpc.pb.h"

namespace skein {

// Connects CoordinatorState with gRPC and the real clock.   call -> event -> effects -> finished calls, log, metrics
// No thread blocks at a barrier: each waiting caller is a reactor that an effect finishes. One thread sleeps until the
// next deadline, and adds to the history once a second. Thread-safe. Must outlive the server it is registered with.
class CoordinatorService final : public v1::Coordinator::CallbackService {
 public:
  // `metrics` must outlive the service.
  // `on_report` is called with each status that updates the metrics, on the thread that made the change. `store`, if
  // not nullptr, must outlive the service. It keeps what a successor must know; while it does not let this coordinator
  // serve, calls are refused with UNAVAILABLE. `arrivals`: the quota of barrier calls of one connection. A learner
  // makes one or two in each iteration and waits for each answer.
  CoordinatorService(CoordinatorState::Options options, AddressRules addresses, CoordinatorMetrics* metrics,
                     std::function<void(const v1::StatusResponse&)> on_report = {}, StateStore* store = nullptr,
                     const CallQuota::Options& arrivals = {.per_second = 5000, .burst = 25000});
  ~CoordinatorService() override;

  // Ends all waiting calls with UNAVAILABLE, refuses new barriers, joins the timer thread. Idempotent.
  void Shutdown() ABSL_LOCKS_EXCLUDED(mu_);

  v1::StatusResponse Status() ABSL_LOCKS_EXCLUDED(mu_);
  // As HistoryJson(), of the last `count` points.
  std::string HistoryText(size_t count) const { return history_.Json(count); }

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
  absl::Status CheckServing() const;  // Unavailable: this coordinator is not, or no longer, the primary.
  absl::StatusOr<v1::JoinRequest> Complete(const v1::JoinRequest& request, const std::string& peer) const;
  // Removes the waiters that `effects` ends from waiters_; Carry() then ends them without the lock.
  Outcome Take(Effects effects) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Carries out the effects. If this coordinator may not serve, or `written` is Aborted or Unavailable, waiting callers
  // get an error (not the primary) instead of their reply.
  void Carry(Outcome outcome, const absl::Status& written) ABSL_LOCKS_EXCLUDED(mu_);
  // Stores the outcome's records, then calls Carry(): here, or on the writer's thread.
  void KeepAndCarry(Outcome outcome) ABSL_LOCKS_EXCLUDED(mu_);
  void NoteWrite(const absl::Status& status);
  void CancelWaiter(WaiterId id) ABSL_LOCKS_EXCLUDED(mu_);
  void Report() ABSL_LOCKS_EXCLUDED(mu_);
  void RunTimer() ABSL_LOCKS_EXCLUDED(mu_);
  void KeepHistory(std::vector<StateChange> changes);

  const std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
  const AddressRules addresses_;
  CoordinatorMetrics* const metrics_;
  const std::function<void(const v1::StatusResponse&)> on_report_;

  KeptHistory history_;
  CallGate gate_;
  MembershipLog membership_log_;

  absl::Mutex mu_;
  CoordinatorState state_ ABSL_GUARDED_BY(mu_);
  std::map<WaiterId, Waiter*> waiters_ ABSL_GUARDED_BY(mu_);  // Each owned by its call; alive while it is in this map.
  WaiterId last_waiter_ ABSL_GUARDED_BY(mu_) = 0;
  bool stopping_ ABSL_GUARDED_BY(mu_) = false;

  std::atomic<int> outcomes_ = 0;  // Number not yet carried out.
  std::atomic<bool> report_due_ = false;

  StateStore* const store_;
  absl::Status last_write_;              // Used on the writer's thread only.
  std::unique_ptr<StateWriter> writer_;  // Constant after construction; nullptr without a store.
  std::thread timer_;
};

}  // namespace skein
