// SPDX-License-Identifier: Apache-2.0
#include "actor/runner.h"

#include <torch/types.h>

#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "actor/action_sampler.h"
#include "actor/fragment_packing.h"
#include "actor/rollout_builder.h"
#include "base/number/bfloat16.h"
#include "base/process/clock.h"
#include "base/process/thread_priority.h"
#include "policy/policy.h"

namespace skein {
namespace {

// Between an environment's failure and its successor.
constexpr absl::Duration kShortestPause = absl::Milliseconds(100), kLongestPause = absl::Seconds(10);

// Steps shorter than this are not worth the few microseconds that it takes two threads to share one.
constexpr absl::Duration kWorthSharing = absl::Microseconds(50);

// Adds up wall time stage by stage: each Lap() books the time since the last one.
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

absl::Status CheckTicket(const v1::Ticket& ticket, const VectorEnv& env) {
  if (static_cast<int>(ticket.num_envs()) != env.num_envs() || ticket.steps() == 0) {
    return absl::InvalidArgumentError(absl::StrCat("ticket ", ticket.id(), ": has ", ticket.num_envs(),
                                                   " environments x ", ticket.steps(), " steps, want ", env.num_envs(),
                                                   " x at least 1"));
  }
  if (!ticket.has_env_state()) return absl::OkStatus();
  const v1::Tensor& state = ticket.env_state();
  const size_t want = sizeof(double) * env.num_envs() * env.state_size();
  if (state.dtype() != v1::DATA_TYPE_FLOAT64 || state.data().size() != want) {
    return absl::InvalidArgumentError(absl::StrCat("ticket ", ticket.id(), ": env_state has ", state.data().size(),
                                                   " bytes, want ", want, " of float64"));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::unique_ptr<Runner>> Runner::Make(const v1::RunConfig& config, EnvRebuilds* rebuilds, Outbox* outbox,
                                                     PolicyStore* policies, StepSharing* sharing, ActorMetrics* metrics,
                                                     const std::atomic<bool>* stop) {
  auto env = rebuilds->Build();
  if (!env.ok()) return env.status();
  std::unique_ptr<Runner> runner(new Runner(config, rebuilds, outbox, policies, sharing, metrics, stop));
  runner->Use(*std::move(env));
  return runner;
}

Runner::Runner(const v1::RunConfig& config, EnvRebuilds* rebuilds, Outbox* outbox, PolicyStore* policies,
               StepSharing* sharing, ActorMetrics* metrics, const std::atomic<bool>* stop)
    : seed_(config.seed()),
      transport_(config.transport()),
      rebuilds_(rebuilds),
      outbox_(outbox),
      policies_(policies),
      sharing_(sharing),
      metrics_(metrics),
      stop_(stop) {}

void Runner::Use(std::unique_ptr<VectorEnv> env) {
  env_ = std::move(env);
  env_->SetActivity(&activity_);
}

absl::Status Runner::Run() {
  at::set_num_threads(1);
  LowerThreadPriority();
  while (true) {
    const absl::Duration idle_from = MonotonicNow();
    absl::Duration helped;
    const std::optional<HeldTicket> held = TakeTicketOrHelp(&helped);
    const absl::Duration idle = MonotonicNow() - idle_from - helped;
    metrics_->AddStage(ActorMetrics::Stage::kWait, idle);
    idle_ += idle;
    if (!held) return absl::OkStatus();
    try {
      if (absl::Status s = ServeUntilDone(*held); !s.ok()) return s;
    } catch (const std::exception& error) {
      return absl::InternalError(absl::StrCat("Torch failed while acting: ", error.what()));
    }
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
  RoundToBfloat16(obs, static_cast<size_t>(env_->num_envs()) * spec.num_agents * spec.obs_size);
}

absl::Status Runner::ServeUntilDone(const HeldTicket& held) {
  Backoff pause(kShortestPause, kLongestPause);
  while (true) {
    const auto done = Serve(held);
    if (!done.ok()) return done.status();
    if (*done) return absl::OkStatus();
    auto env = rebuilds_->Rebuild(env_->failure(), pause.Next());
    if (!env.ok()) outbox_->DropTicket(held.ticket.id());
    if (absl::IsCancelled(env.status())) return absl::OkStatus();
    if (!env.ok()) return env.status();
    Use(*std::move(env));
  }
}

absl::StatusOr<bool> Runner::Serve(const HeldTicket& held) {
  const v1::Ticket& ticket = held.ticket;
  if (absl::Status s = CheckTicket(ticket, *env_); !s.ok()) return s;
  absl::Duration wait, build, inference, env_step;
  StopWatch watch;
  auto policy = policies_->WaitFor(held.epoch, ticket.policy_version());
  watch.Lap(&wait);
  if (!policy.ok()) {
    outbox_->DropTicket(ticket.id());
    return true;
  }
  if (ticket.has_env_state()) {
    const auto* state = reinterpret_cast<const double*>(ticket.env_state().data().data());
    const absl::Status loaded = env_->LoadState(ticket.first_env(), state);
    if (!loaded.ok() && env_->failure().ok()) return loaded;
  } else {
    env_->ResetAll(ticket.first_env());
  }
  if (!env_->failure().ok()) return false;

  const EnvSpec& spec = env_->spec();
  const int64_t E = env_->num_envs(), A = spec.num_agents, T = ticket.steps();
  RolloutBuilder builder(spec);
  builder.Begin(ticket, (*policy)->version(), env_->state_size());
  Observe(builder.obs(0));
  if (spec.global_state_size > 0) env_->GlobalState(builder.state(0));
  torch::Tensor log_std;
  if (!spec.discrete) log_std = (*policy)->log_std().contiguous();
  std::vector<float> head(E * A * (*policy)->head_size());
  std::vector<float> choice_as_float(spec.discrete ? E * A : 0);
  watch.Lap(&build);

  std::optional<StepSharing::Offer> shared;
  for (int64_t t = 0; t < T; ++t) {
    if (stop_->load(std::memory_order_relaxed)) {
      outbox_->DropTicket(ticket.id());
      return true;
    }
    (*policy)->Head(builder.obs(t), E * A, head.data());
    const float* action;
    if (spec.discrete) {
      SampleCategorical(seed_, *env_, head.data(), builder.choice(t), builder.log_prob(t));
      for (int64_t i = 0; i < E * A; ++i) choice_as_float[i] = static_cast<float>(builder.choice(t)[i]);
      action = choice_as_float.data();
    } else {
      SampleGaussian(seed_, *env_, head.data(), log_std.data_ptr<float>(), builder.action(t), builder.log_prob(t));
      action = builder.action(t);
    }
    watch.Lap(&inference);
    const VectorEnv::StepResult result = env_->Step(action);
    watch.Lap(&env_step);
    builder.Add(t, result);
    Observe(builder.obs(t + 1));
    if (spec.global_state_size > 0) env_->GlobalState(builder.state(t + 1));
    if (!env_->failure().ok()) return false;
    watch.Lap(&build);
    if (!shared && env_step > kWorthSharing * (t + 1)) shared.emplace(sharing_, env_.get());
  }
  shared.reset();
  env_step += env_->TakeHelped();
  env_->SaveState(builder.env_state());
  if (!env_->failure().ok()) return false;

  v1::StageSeconds seconds;
  seconds.set_wait(absl::ToDoubleSeconds(std::exchange(idle_, absl::ZeroDuration()) + wait));
  seconds.set_build(absl::ToDoubleSeconds(build));
  seconds.set_inference(absl::ToDoubleSeconds(inference));
  seconds.set_env_step(absl::ToDoubleSeconds(env_step));
  Fragment fragment = builder.Finish(seconds);
  PackFragment(builder.schema(), transport_, &fragment);
  watch.Lap(&build);
  fragment.header.mutable_stage_seconds()->set_build(absl::ToDoubleSeconds(build));
  if (outbox_->PutBatch(std::move(fragment))) metrics_->CountDroppedBatch();
  metrics_->AddStage(ActorMetrics::Stage::kWait, wait);
  metrics_->AddStage(ActorMetrics::Stage::kBuild, build);
  metrics_->AddStage(ActorMetrics::Stage::kInference, inference);
  metrics_->AddStage(ActorMetrics::Stage::kEnvStep, env_step);
  metrics_->CountFragment(static_cast<uint64_t>(T * E));
  return true;
}

}  // namespace skein
