// SPDX-License-Identifier: Apache-2.0
#include "coordinator/metrics.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "absl/strings/ascii.h"
#include "base/config/run_state_name.h"

namespace skein {
namespace {

prometheus::Family<prometheus::Gauge>& GaugeFamily(prometheus::Registry* registry, const char* name, const char* help) {
  return prometheus::BuildGauge().Name(name).Help(help).Register(*registry);
}

prometheus::Family<prometheus::Counter>& CounterFamily(prometheus::Registry* registry, const char* name,
                                                       const char* help) {
  return prometheus::BuildCounter().Name(name).Help(help).Register(*registry);
}

prometheus::Gauge* OneGauge(prometheus::Registry* registry, const char* name, const char* help) {
  return &GaugeFamily(registry, name, help).Add({});
}

constexpr double kUnknown = std::numeric_limits<double>::quiet_NaN();

// The sum of what live actors can reach at most; NaN = it is not known of one of them, or there is none.
double SumOfLimits(const v1::StatusResponse& status) {
  double sum = 0;
  for (const v1::MemberStatus& member : status.members()) {
    if (member.role() != RoleName(v1::ROLE_ACTOR)) continue;
    const double limit = member.report().limit_env_steps_per_second();
    if (!(limit > 0)) return kUnknown;
    sum += limit;
  }
  return sum > 0 ? sum : kUnknown;
}

// Whether the progress is what a learner reported. A new coordinator has only zeros.
bool HasProgress(const v1::StatusResponse& status) {
  if (status.progress().env_steps() > 0 || status.progress().iteration() > 0) return true;
  return std::any_of(status.members().begin(), status.members().end(),
                     [](const v1::MemberStatus& member) { return member.role() == RoleName(v1::ROLE_LEARNER); });
}

}  // namespace

CoordinatorMetrics::CoordinatorMetrics(prometheus::Registry* registry) {
  auto& members = GaugeFamily(registry, "skein_coordinator_members", "Live members by role.");
  auto& joins = CounterFamily(registry, "skein_coordinator_joins_total", "Members that joined, by role.");
  auto& leaves = CounterFamily(registry, "skein_coordinator_leaves_total", "Members that left in order, by role.");
  auto& expirations = CounterFamily(registry, "skein_coordinator_expirations_total",
                                    "Members expelled because their lease ended, by role.");
  for (v1::Role role : {v1::ROLE_LEARNER, v1::ROLE_ACTOR}) {
    const prometheus::Labels labels{{"role", RoleName(role)}};
    roles_[role] = {&members.Add(labels), &joins.Add(labels), &leaves.Add(labels), &expirations.Add(labels)};
  }
  heartbeats_ = &CounterFamily(registry, "skein_coordinator_heartbeats_total", "Heartbeats of live members.").Add({});
  state_write_errors_ = &CounterFamily(registry, "skein_coordinator_state_write_errors_total",
                                       "Attempts to keep the coordinator's state for a successor that failed.")
                             .Add({});
  state_kept_ =
      OneGauge(registry, "skein_coordinator_state_kept",
               "1 = a successor finds the coordinator's state; 0 = it could not be opened; NaN = not wanted.");
  state_kept_->Set(kUnknown);
  refusals_ = &CounterFamily(registry, "skein_coordinator_refusals_total", "Calls refused, by call and status code.");
  barrier_waiters_ = OneGauge(registry, "skein_coordinator_barrier_waiters", "Calls waiting at barriers now.");
  barrier_absentees_ = OneGauge(registry, "skein_coordinator_barrier_absentees",
                                "Arrivals that barriers with waiting members still lack.");
  barrier_wait_ =
      &prometheus::BuildHistogram()
           .Name("skein_coordinator_barrier_wait_seconds")
           .Help("How long members waited at barriers, whatever the outcome.")
           .Register(*registry)
           .Add({}, prometheus::Histogram::BucketBoundaries{0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1, 3, 10, 30, 100});
  barrier_timeouts_ = &CounterFamily(registry, "skein_coordinator_barrier_timeouts_total",
                                     "Barriers that reached their deadline with members absent.")
                           .Add({});
  auto& moves = CounterFamily(registry, "skein_coordinator_actor_moves_total",
                              "Times that an actor was given another learner, by reason.");
  moves_for_balance_ = &moves.Add({{"reason", "balance"}});
  moves_for_starvation_ = &moves.Add({{"reason", "starvation"}});
  learner_runners_ = &GaugeFamily(registry, "skein_coordinator_learner_runners",
                                  "Runner threads of the live actors that feed a learner.");
  learner_runners_->Add({{"learner", LearnerId(0)}});
  run_info_ = &GaugeFamily(registry, "skein_coordinator_run_info", "Always 1; the labels name the run.");
  auto& states = GaugeFamily(registry, "skein_coordinator_run_state", "1 for the state the run is in, else 0.");
  for (v1::RunState state :
       {v1::RUN_STATE_STARTING, v1::RUN_STATE_WAITING_FOR_DATA, v1::RUN_STATE_TRAINING, v1::RUN_STATE_FINISHED,
        v1::RUN_STATE_STOPPED, v1::RUN_STATE_FAILED, v1::RUN_STATE_BLOCKED}) {
    run_states_[state] = &states.Add({{"state", RunStateName(state)}});
  }
  auto& steps = GaugeFamily(registry, "skein_coordinator_run_account_env_steps",
                            "Env steps by fate: collected = trained + stale + rejected + lost + pending.");
  for (const char* fate : {"collected", "trained", "stale", "rejected", "lost", "pending"}) {
    run_steps_[fate] = &steps.Add({{"fate", fate}});
  }
  auto& rates = GaugeFamily(registry, "skein_coordinator_run_env_steps_per_second",
                            "Env steps trained on per second, over the window.");
  for (const char* window : {"10s", "60s", "300s"}) run_rates_[window] = &rates.Add({{"window", window}});
  env_steps_ = OneGauge(registry, "skein_coordinator_run_env_steps", "Env steps trained on so far.");
  target_env_steps_ = OneGauge(registry, "skein_coordinator_run_target_env_steps", "Env steps the run ends at.");
  iteration_ = OneGauge(registry, "skein_coordinator_run_iteration", "Learner iterations done.");
  policy_version_ = OneGauge(registry, "skein_coordinator_run_policy_version", "Newest policy version.");
  episode_return_ = OneGauge(registry, "skein_coordinator_run_mean_episode_return",
                             "Mean return of the last 100 episodes; NaN before the first.");
  episode_length_ = OneGauge(registry, "skein_coordinator_run_mean_episode_length_env_steps",
                             "Mean length of the last 100 episodes.");
  policy_lag_ = OneGauge(registry, "skein_coordinator_run_mean_policy_lag_versions",
                         "Learner version minus behaviour version, mean of the last batch.");
  episodes_ = OneGauge(registry, "skein_coordinator_run_episodes", "Episodes ended so far.");
  queued_batches_ =
      OneGauge(registry, "skein_coordinator_run_queued_batches", "Fragments admitted, not yet trained on.");
  limit_ = OneGauge(registry, "skein_coordinator_run_limit_env_steps_per_second",
                    "Sum over the live actors of what they reached at stepping and nothing else; NaN = not known.");
  efficiency_ = OneGauge(registry, "skein_coordinator_run_efficiency_ratio",
                         "Env steps trained on per second, over 60 s, over that sum; NaN = not known.");
  eta_ = OneGauge(registry, "skein_coordinator_run_eta_seconds", "Estimated time to the end; NaN = not known.");
  degraded_members_ = OneGauge(registry, "skein_coordinator_degraded_members",
                               "Actors whose lease lives and whose data have not passed for longer than a lease.");
  wanted_actors_ = OneGauge(registry, "skein_coordinator_wanted_actors",
                            "Actors with which the learner would wait for data a fifth of its time.");
  status_page_ = &GaugeFamily(registry, "skein_coordinator_status_page_info", "Always 1; the label is its address.");
  wanted_actors_->Set(kUnknown);
  RunReported({});
}

void CoordinatorMetrics::MemberChanged(const MembershipChange& change) {
  const RoleMetrics& role = roles_.at(change.member.role);
  switch (change.kind) {
    case MembershipChange::kJoined:
      role.joins->Increment();
      role.members->Increment();
      return;
    case MembershipChange::kLeft:
      role.leaves->Increment();
      break;
    case MembershipChange::kExpired:
      role.expirations->Increment();
      break;
  }
  role.members->Decrement();
  if (change.member.role == v1::ROLE_LEARNER) learner_runners_->Add({{"learner", change.member.id}}).Set(0);
}

void CoordinatorMetrics::ActorMoved(const Assignment::Move& move) {
  (move.starvation ? moves_for_starvation_ : moves_for_balance_)->Increment();
}

void CoordinatorMetrics::CallRefused(const std::string& call, absl::StatusCode code) {
  refusals_->Add({{"call", call}, {"code", absl::AsciiStrToLower(absl::StatusCodeToString(code))}}).Increment();
}

void CoordinatorMetrics::BarrierWaitEnded(absl::Duration wait) {
  barrier_waiters_->Decrement();
  barrier_wait_->Observe(absl::ToDoubleSeconds(wait));
}

void CoordinatorMetrics::RunReported(const v1::StatusResponse& status) {
  const v1::RunProgress& progress = status.progress();
  if (!status.run_id().empty()) {
    run_info_->Add({{"run_id", status.run_id()}, {"run", status.run_name()}, {"env", status.env_id()}}).Set(1);
  }
  std::map<std::string, double> runners;
  int degraded = 0;
  for (const v1::MemberStatus& member : status.members()) {
    if (member.role() == RoleName(v1::ROLE_LEARNER)) runners[member.member_id()] += 0;
    if (member.degraded()) ++degraded;
    if (!member.learner_id().empty()) runners[member.learner_id()] += std::max(member.runners(), 1u);
  }
  for (const auto& [learner, count] : runners) learner_runners_->Add({{"learner", learner}}).Set(count);
  degraded_members_->Set(degraded);
  for (auto& [state, gauge] : run_states_) gauge->Set(state == status.state() ? 1 : 0);
  const bool known = HasProgress(status);
  const auto set = [](prometheus::Gauge* gauge, bool is_known, double value) {
    gauge->Set(is_known ? value : kUnknown);
  };
  const v1::StepAccount& account = progress.account();
  set(run_steps_["collected"], known, account.collected());
  set(run_steps_["trained"], known, account.trained());
  set(run_steps_["stale"], known, account.stale());
  set(run_steps_["rejected"], known, account.rejected());
  set(run_steps_["lost"], known, account.lost());
  set(run_steps_["pending"], known, account.pending());
  set(run_rates_["10s"], known, progress.env_steps_per_second_10s());
  set(run_rates_["60s"], known, progress.env_steps_per_second_60s());
  set(run_rates_["300s"], known, progress.env_steps_per_second_300s());
  set(env_steps_, known, progress.env_steps());
  set(target_env_steps_, progress.target_env_steps() > 0, progress.target_env_steps());
  set(iteration_, known, progress.iteration());
  set(policy_version_, known, progress.policy_version());
  set(queued_batches_, known, progress.queued_batches());
  set(episodes_, known, progress.episodes());
  const bool any_episode = known && progress.episodes() > 0;
  set(episode_return_, any_episode, progress.mean_episode_return());
  set(episode_length_, any_episode && !std::isnan(progress.mean_episode_return()), progress.mean_episode_length());
  set(policy_lag_, known && progress.iteration() > 0, progress.mean_policy_lag());
  set(eta_, known && progress.eta_seconds() >= 0, progress.eta_seconds());
  const double limit = SumOfLimits(status);
  limit_->Set(limit);
  efficiency_->Set(progress.env_steps_per_second_60s() / limit);
}

}  // namespace skein
