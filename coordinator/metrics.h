// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "coordinator/coordinator_state.h"
#include "prometheus/counter.h"
#include "prometheus/gauge.h"
#include "prometheus/histogram.h"
#include "prometheus/registry.h"

namespace skein {

// The coordinator's Prometheus metrics. Metric names appear in this module only. Thread-safe.
class CoordinatorMetrics {
 public:
  // Registers with `registry`, which must outlive this object.
  explicit CoordinatorMetrics(prometheus::Registry* registry);

  void MemberChanged(const MembershipChange& change);
  void HeartbeatTaken() { heartbeats_->Increment(); }
  void CallRefused(const std::string& call, absl::StatusCode code);
  void StateWriteFailed() { state_write_errors_->Increment(); }
  // Whether a successor will find this coordinator's state. Not called: it was not asked for.
  void SetStateKept(bool kept) { state_kept_->Set(kept ? 1 : 0); }
  void BarrierWaitBegan() { barrier_waiters_->Increment(); }
  void BarrierWaitEnded(absl::Duration wait);
  void SetBarrierAbsentees(size_t absentees) { barrier_absentees_->Set(static_cast<double>(absentees)); }
  void BarriersTimedOut(int barriers) { barrier_timeouts_->Increment(barriers); }
  void ActorMoved(const Assignment::Move& move);
  void RunReported(const v1::StatusResponse& status);
  // `url`: where a browser finds the status page.
  void SetStatusPage(const std::string& url) { status_page_->Add({{"url", url}}).Set(1); }
  void SetWantedActors(uint32_t actors) { wanted_actors_->Set(actors); }

 private:
  struct RoleMetrics {
    prometheus::Gauge* members;
    prometheus::Counter* joins;
    prometheus::Counter* leaves;
    prometheus::Counter* expirations;
  };
  std::map<v1::Role, RoleMetrics> roles_;
  std::map<v1::RunState, prometheus::Gauge*> run_states_;
  std::map<std::string, prometheus::Gauge*> run_steps_;  // By fate.
  std::map<std::string, prometheus::Gauge*> run_rates_;  // By window.
  prometheus::Family<prometheus::Counter>* refusals_;
  prometheus::Family<prometheus::Gauge>* run_info_;
  prometheus::Family<prometheus::Gauge>* status_page_;
  prometheus::Counter* heartbeats_;
  prometheus::Counter* state_write_errors_;
  prometheus::Gauge* state_kept_;
  prometheus::Gauge* barrier_waiters_;
  prometheus::Gauge* barrier_absentees_;
  prometheus::Histogram* barrier_wait_;
  prometheus::Counter* barrier_timeouts_;
  prometheus::Counter* moves_for_balance_;
  prometheus::Counter* moves_for_starvation_;
  prometheus::Family<prometheus::Gauge>* learner_runners_;
  prometheus::Gauge* env_steps_;
  prometheus::Gauge* target_env_steps_;
  prometheus::Gauge* iteration_;
  prometheus::Gauge* policy_version_;
  prometheus::Gauge* episode_return_;
  prometheus::Gauge* episode_length_;
  prometheus::Gauge* policy_lag_;
  prometheus::Gauge* episodes_;
  prometheus::Gauge* queued_batches_;
  prometheus::Gauge* eta_;
  prometheus::Gauge* wanted_actors_;
  prometheus::Gauge* limit_;
  prometheus::Gauge* efficiency_;
  prometheus::Gauge* degraded_members_;
};

}  // namespace skein
