// SPDX-License-Identifier: Apache-2.0
#include "actor/runner.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "actor/action_sampler.h"
#include "actor/fragment_packing.h"
#include "actor/rollout_builder.h"
#include "base/config/algorithm_rules.h"
#include "base/number/bfloat16.h"
#include "base/process/clock.h"
#include "base/process/thread_priority.h"
#include "policy/policy.h"

namespace skein {
namespace {

// Between an environment's failure and its successor.
constexpr absl::Duration kShortestPause = absl::Milliseconds(100), kLongestPause = absl::Seconds(10);

// Where environments that cannot be moved begin after one of their group has failed, from their ticket's first episode
// on; half of what one start of a group has (learner/collect/env_groups.h).
constexpr uint64_t kEpisodesAfterFailure = uint64_t{1} << 19;

// Steps shorter than this are not worth the few microseconds that it takes two threads to share one.
constexpr absl::Duration kWorthSharing = absl::Microseconds(50);

// Adds up wall time stage by stage: each Lap() adds the time since the last one.
class StopWatch {
 public:
  StopWatch() : last_(MonotonicNow()) {}
  void Lap(absl::Duration* stage) {
    const absl::Duration now = MonotonicNow();
    *stage += now - last_;
    last_ = now;
  }

 private:
  absl::Duration last_;
};

absl::Status CheckTicket(const v1::Ticket& ticket, int group_envs, int state_size) {
  if (static_cast<int>(ticket.group_envs()) != group_envs || ticket.steps() == 0) {
    return absl::InvalidArgumentError(absl::StrCat("ticket ", ticket.id(), ": has ", ticket.group_envs(),
                                                   " environments x ", ticket.steps(), " steps, want ", group_envs,
                                                   " x at least 1"));
  }
  if (!ticket.has_env_state()) return absl::OkStatus();
  const v1::Tensor& state = ticket.env_state();
  const size_t want = sizeof(double) * static_cast<size_t>(group_envs) * static_cast<size_t>(state_size);
  if (state.dtype() != v1::DATA_TYPE_FLOAT64 || state.data().size() != want) {
    return absl::InvalidArgumentError(absl::StrCat("ticket ", ticket.id(), ": env_state has ", state.data().size(),
                                                   " bytes, want ", want, " of float64"));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::unique_ptr<Runner>> Runner::Make(const v1::RunConfig& config, EnvRebuilds* rebuilds,
                                                     HeldEnvs* held_envs, Outbox* outbox, PolicyStore* policies,
                                                     StepSharing* sharing, ActorMetrics* metrics,
                                                     const std::atomic<bool>* stop) {
  auto env = rebuilds->Build(0);
  if (!env.ok()) return env.status();
  std::unique_ptr<Runner> runner(new Runner(config, rebuilds, held_envs, outbox, policies, sharing, metrics, stop));
  runner->Use(*std::move(env), 0);
  return runner;
}

Runner::Runner(const v1::RunConfig& config, EnvRebuilds* rebuilds, HeldEnvs* held_envs, Outbox* outbox,
               PolicyStore* policies, StepSharing* sharing, ActorMetrics* metrics, const std::atomic<bool>* stop)
    : seed_(config.seed()),
      transport_(config.transport()),
      algorithm_fields_(AlgorithmFields(config)),
      rebuilds_(rebuilds),
      held_envs_(held_envs),
      directions_(config.seed(), config.model().normalize_observations()),
      outbox_(outbox),
      policies_(policies),
      sharing_(sharing),
      metrics_(metrics),
      stop_(stop) {}

void Runner::Use(std::unique_ptr<VectorEnv> env, uint32_t phase) {
  env_ = std::move(env);
  env_phase_ = phase;
  env_->SetActivity(&activity_);
  group_envs_ = env_->size();
  env_state_size_ = env_->state_size();
}

absl::Status Runner::Run() {
  LowerThreadPriority();
  while (true) {
    const absl::Duration idle_from = MonotonicNow();
    absl::Duration helped;
    const std::optional<HeldTicket> held = TakeTicketOrHelp(&helped);
    const absl::Duration idle = MonotonicNow() - idle_from - helped;
    metrics_->AddStage(ActorMetrics::Stage::kWait, idle);
    idle_ += idle;
    if (!held) return absl::OkStatus();
    if (absl::Status s = ServeUntilDone(*held); !s.ok()) return s;
  }
}

std::optional<HeldTicket> Runner::TakeTicketOrHelp(absl::Duration* helped) {
  while (true) {
    std::optional<HeldTicket> held = outbox_->TakeTicket([this] { return sharing_->wants_help(); });
    if (held || outbox_->stopped()) return held;
    *helped += sharing_->Help(&activity_, [this] { return outbox_->HasWork(); }).value_or(absl::ZeroDuration());
  }
}

void Runner::Observe(float* obs) const {
  env_->Observe(obs);
  if (transport_.trajectory_precision() != v1::PRECISION_BF16) return;
  const EnvSpec& spec = env_->spec();
  RoundToBfloat16(obs, static_cast<size_t>(env_->size()) * spec.num_agents * spec.obs_size);
}

absl::Status Runner::ServeUntilDone(const HeldTicket& held) {
  Backoff pause(kShortestPause, kLongestPause);
  restarted_episodes_ = 0;
  for (uint32_t failures = 1;; ++failures) {
    const auto done = Serve(held);
    if (!done.ok()) return done.status();
    if (*done) return absl::OkStatus();
    if (!env_->spec().relocatable) restarted_episodes_ += static_cast<uint32_t>(env_->size());
    auto env = rebuilds_->Rebuild(env_->failure(), failures, pause.Next(), held.ticket.phase());
    if (!env.ok()) outbox_->DropTicket(held.ticket.id());
    if (absl::IsCancelled(env.status())) return absl::OkStatus();
    if (!env.ok()) return env.status();
    Use(*std::move(env), held.ticket.phase());
  }
}

absl::Status Runner::UsePhase(uint32_t phase) {
  if (env_ != nullptr && env_phase_ == phase) return absl::OkStatus();
  auto envs = rebuilds_->Build(phase);
  if (envs.ok()) Use(*std::move(envs), phase);
  return envs.status();
}

absl::StatusOr<bool> Runner::PlaceEnvs(const HeldTicket& held) {
  const v1::Ticket& ticket = held.ticket;
  uint64_t first_episode = ticket.first_episode();
  if (ticket.episodes_since() != 0 && ticket.episodes_since() != ticket.id()) {
    if (auto envs = held_envs_->Take(held.stream, ticket.first_env(), ticket.episodes_since()); envs != nullptr) {
      Use(std::move(envs), ticket.phase());
      return true;
    }
    // An environment of the group has failed: other episodes than those before, so that random numbers are new.
    first_episode += kEpisodesAfterFailure + ticket.id() % kEpisodesAfterFailure;
  }
  if (absl::Status s = UsePhase(ticket.phase()); !s.ok()) return s;
  if (!ticket.has_env_state()) {
    env_->ResetAll(ticket.first_env(), first_episode);
    return false;
  }
  const auto* state = reinterpret_cast<const double*>(ticket.env_state().data().data());
  const absl::Status loaded = env_->LoadState(ticket.first_env(), state);
  if (!loaded.ok() && env_->failure().ok()) return loaded;
  return true;
}

absl::Status Runner::LoadPolicyState(const v1::Ticket& ticket, int64_t size) {
  policy_state_.assign(static_cast<size_t>(size), 0);
  if (!ticket.has_policy_state()) return absl::OkStatus();
  const v1::Tensor& state = ticket.policy_state();
  const size_t want = policy_state_.size() * sizeof(float);
  if (state.dtype() != v1::DATA_TYPE_FLOAT32 || state.data().size() != want) {
    return absl::InvalidArgumentError(absl::StrCat("ticket ", ticket.id(), ": policy_state has ", state.data().size(),
                                                   " bytes, want ", want, " of float32"));
  }
  std::copy_n(state.data().data(), want, reinterpret_cast<char*>(policy_state_.data()));
  return absl::OkStatus();
}

void Runner::ForgetEndedEpisodes(const VectorEnv::StepResult& result, int64_t width) {
  if (width == 0) return;
  for (int e = 0; e < env_->size(); ++e) {
    if (result.terminated[e] != 0 || result.truncated[e] != 0) std::fill_n(policy_state_.begin() + e * width, width, 0);
  }
}

absl::StatusOr<bool> Runner::ServeDirections(const HeldTicket& held) {
  absl::Duration wait, play;
  StopWatch watch;
  const auto policy = policies_->WaitFor(held.stream, held.ticket.policy_version());
  watch.Lap(&wait);
  std::optional<Fragment> fragment;
  if (absl::Status s = UsePhase(held.ticket.phase()); !s.ok()) return s;
  if (policy.ok()) {
    auto played = directions_.Play(held.ticket, **policy, env_.get(), *stop_);
    if (!played.ok()) return played.status();
    if (!env_->failure().ok()) return false;
    fragment = *std::move(played);
  }
  watch.Lap(&play);
  if (!fragment) {
    outbox_->DropTicket(held.ticket.id());
    return true;
  }
  v1::StageSeconds& seconds = *fragment->header.mutable_stage_seconds();
  const absl::Duration inference = std::min(play, absl::Seconds(seconds.inference()));
  const absl::Duration env_step = play - inference;
  seconds.set_wait(absl::ToDoubleSeconds(std::exchange(idle_, absl::ZeroDuration()) + wait));
  seconds.set_inference(absl::ToDoubleSeconds(inference));
  seconds.set_env_step(absl::ToDoubleSeconds(env_step));
  const uint64_t env_steps = fragment->header.env_steps();
  if (outbox_->PutFragment(*std::move(fragment))) metrics_->CountDroppedFragment();
  metrics_->AddStage(ActorMetrics::Stage::kWait, wait);
  metrics_->AddStage(ActorMetrics::Stage::kInference, inference);
  metrics_->AddStage(ActorMetrics::Stage::kEnvStep, env_step);
  metrics_->CountFragment(env_steps);
  return true;
}

absl::StatusOr<bool> Runner::Serve(const HeldTicket& held) {
  if (held.ticket.has_directions()) return ServeDirections(held);
  const v1::Ticket& ticket = held.ticket;
  if (absl::Status s = CheckTicket(ticket, group_envs_, env_state_size_); !s.ok()) return s;
  absl::Duration wait, build, inference, env_step;
  StopWatch watch;
  auto policy = policies_->WaitFor(held.stream, ticket.policy_version());
  watch.Lap(&wait);
  if (!policy.ok()) {
    outbox_->DropTicket(ticket.id());
    return true;
  }
  const auto continued = PlaceEnvs(held);
  if (!continued.ok()) return continued.status();
  if (!env_->failure().ok()) return false;

  const EnvSpec& spec = env_->spec();
  const int64_t E = env_->size(), A = spec.num_agents, T = ticket.steps();
  const int64_t S = (*policy)->spec().state_size();
  if (absl::Status s = LoadPolicyState(ticket, E * A * S); !s.ok()) return s;
  if (!*continued) std::fill(policy_state_.begin(), policy_state_.end(), 0.0f);
  RolloutBuilder builder(spec, S, algorithm_fields_);
  builder.Begin(ticket, (*policy)->version(), env_->state_size());
  Observe(builder.obs(0));
  if (spec.global_state_size > 0) env_->GlobalState(builder.state(0));
  std::vector<float> head(static_cast<size_t>(E * A * (*policy)->spec().head_size()));
  std::vector<float> choice_as_float(spec.discrete ? E * A : 0);
  watch.Lap(&build);

  std::optional<StepSharing::Offer> shared;
  for (int64_t t = 0; t < T; ++t) {
    if (stop_->load(std::memory_order_relaxed)) {
      outbox_->DropTicket(ticket.id());
      return true;
    }
    (*policy)->Act(builder.obs(t), policy_state_.data(), E * A, head.data(), policy_state_.data());
    const float* action;
    if (spec.discrete) {
      SampleCategorical(seed_, *env_, head.data(), builder.choice(t), builder.log_prob(t));
      for (int64_t i = 0; i < E * A; ++i) choice_as_float[i] = static_cast<float>(builder.choice(t)[i]);
      action = choice_as_float.data();
    } else {
      SampleGaussian(seed_, *env_, head.data(), (*policy)->log_std().data(), builder.action(t), builder.log_prob(t));
      action = builder.action(t);
    }
    watch.Lap(&inference);
    const VectorEnv::StepResult result = env_->Step(action);
    watch.Lap(&env_step);
    builder.Add(t, result);
    ForgetEndedEpisodes(result, A * S);
    Observe(builder.obs(t + 1));
    if (spec.global_state_size > 0) env_->GlobalState(builder.state(t + 1));
    if (!env_->failure().ok()) return false;
    watch.Lap(&build);
    if (!shared && env_step > kWorthSharing * (t + 1)) shared.emplace(sharing_, env_.get());
  }
  shared.reset();
  env_step += env_->TakeHelped();
  env_->SaveState(builder.env_state());
  std::copy(policy_state_.begin(), policy_state_.end(), builder.policy_state());
  if (!env_->failure().ok()) return false;

  v1::StageSeconds seconds;
  seconds.set_wait(absl::ToDoubleSeconds(std::exchange(idle_, absl::ZeroDuration()) + wait));
  seconds.set_build(absl::ToDoubleSeconds(build));
  seconds.set_inference(absl::ToDoubleSeconds(inference));
  seconds.set_env_step(absl::ToDoubleSeconds(env_step));
  Fragment fragment = builder.Finish(seconds);
  fragment.header.set_restarted_episodes(restarted_episodes_);
  PackFragment(builder.schema(), transport_, &fragment);
  watch.Lap(&build);
  fragment.header.mutable_stage_seconds()->set_build(absl::ToDoubleSeconds(build));
  if (ticket.episodes_since() != 0) {  // First: with the fragment sent, the group's next ticket may come.
    held_envs_->Put(held.stream, ticket.first_env(), ticket.episodes_since(), std::move(env_));
  }
  if (outbox_->PutFragment(std::move(fragment))) metrics_->CountDroppedFragment();
  metrics_->AddStage(ActorMetrics::Stage::kWait, wait);
  metrics_->AddStage(ActorMetrics::Stage::kBuild, build);
  metrics_->AddStage(ActorMetrics::Stage::kInference, inference);
  metrics_->AddStage(ActorMetrics::Stage::kEnvStep, env_step);
  metrics_->CountFragment(static_cast<uint64_t>(T * E));
  return true;
}

}  // namespace skein
