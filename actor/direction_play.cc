// SPDX-License-Identifier: Apache-2.0
#include "actor/direction_play.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "base/process/clock.h"
#include "trajectory/env_spec_info.h"
#include "trajectory/schema.h"

namespace skein {
namespace {

// One step of so many is timed: reading the clock at each would cost a cheap environment more than its steps.
constexpr uint64_t kStepsPerTimed = 16;

absl::Status CheckTicket(const v1::Ticket& ticket) {
  const v1::DirectionsWork& work = ticket.directions();
  if (ticket.policy_version() > 0 && ticket.group_envs() > 0 && work.episodes() > 0 && work.episode_steps() > 0) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "ticket ", ticket.id(), ": has ", ticket.group_envs(), " directions x ", work.episodes(), " episodes x ",
      work.episode_steps(), " steps of policy ", ticket.policy_version(), ", want at least 1 each"));
}

}  // namespace

absl::StatusOr<std::optional<Fragment>> DirectionPlay::Play(const v1::Ticket& ticket, const Policy& policy,
                                                            VectorEnv* env, const std::atomic<bool>& stop) {
  if (absl::Status s = CheckTicket(ticket); !s.ok()) return s;
  if (env->size() != 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("ticket ", ticket.id(), ": asks for directions, which this run does not search over"));
  }
  const v1::DirectionsWork& work = ticket.directions();
  const uint64_t iteration = ticket.policy_version() - 1;
  const auto obs_size = static_cast<size_t>(env->spec().obs_size);
  obs_.resize(obs_size);
  head_.resize(static_cast<size_t>(policy.spec().head_size()));
  if (!moments_) moments_.emplace(obs_size);
  if (!direction_moments_) direction_moments_.emplace(obs_size);
  moments_->Clear();
  timed_ = {};
  plus_.assign(ticket.group_envs(), {});
  minus_.assign(ticket.group_envs(), {});
  for (uint32_t d = 0; d < ticket.group_envs(); ++d) {
    const Direction direction{seed_, iteration, uint64_t{ticket.first_env()} + d};
    direction_moments_->Clear();
    for (const bool plus : {true, false}) {
      const auto perturbed = policy.Perturbed(direction, plus ? work.noise_std() : -work.noise_std());
      if (perturbed == nullptr) return absl::InvalidArgumentError("the policy has a memory and cannot be perturbed");
      Sums& sums = plus ? plus_[d] : minus_[d];
      for (uint32_t e = 0; e < work.episodes(); ++e) {
        const uint64_t env_index = direction.index * work.episodes() + e;
        if (!PlayEpisode(*perturbed, env_index, iteration, work.episode_steps(), env, stop, &sums)) return std::nullopt;
      }
    }
    if (std::isfinite(plus_[d].episode_return) && std::isfinite(minus_[d].episode_return)) {
      moments_->Add(*direction_moments_);
    }
  }
  return Pack(ticket, env->spec());
}

bool DirectionPlay::PlayEpisode(const Policy& policy, uint64_t env_index, uint64_t iteration, uint32_t most_steps,
                                VectorEnv* env, const std::atomic<bool>& stop, Sums* sums) {
  const EnvSpec& spec = env->spec();
  float choice = 0;
  env->ResetAll(env_index, iteration);
  for (uint32_t step = 1; env->failure().ok() && !stop.load(std::memory_order_relaxed); ++step) {
    env->Observe(obs_.data());
    if (counts_observations_) direction_moments_->Add(obs_.data());
    const bool timed = ++steps_ % kStepsPerTimed == 0;
    const absl::Duration begin = timed ? MonotonicNow() : absl::ZeroDuration();
    policy.Act(obs_.data(), nullptr, 1, head_.data(), nullptr);
    if (spec.discrete) choice = static_cast<float>(std::max_element(head_.begin(), head_.end()) - head_.begin());
    if (timed) {
      timed_.inference += MonotonicNow() - begin;
      ++timed_.steps;
    }
    const VectorEnv::StepResult result = env->Step(spec.discrete ? &choice : head_.data());
    sums->episode_return += double{result.reward[0]};
    ++sums->steps;
    if (result.diverged[0] != 0) sums->episode_return = std::numeric_limits<double>::quiet_NaN();
    if (result.terminated[0] != 0 || result.truncated[0] != 0 || step >= most_steps) return env->failure().ok();
  }
  return false;
}

Fragment DirectionPlay::Pack(const v1::Ticket& ticket, const EnvSpec& spec) {
  FragmentShape shape;
  shape.steps = 1;
  shape.group_envs = ticket.group_envs();
  shape.spec = MakeEnvSpecInfo(spec);
  shape.direction_episodes = ticket.directions().episodes();
  shape.counts_observations = counts_observations_;
  fragment_.Begin(MakeSchema(shape), ticket, ticket.policy_version());

  uint64_t steps = 0;
  const auto write = [&](absl::string_view return_field, absl::string_view steps_field, const std::vector<Sums>& sums) {
    double* const returns_of = fragment_.values<double>(return_field);
    int64_t* const steps_of = fragment_.values<int64_t>(steps_field);
    for (size_t d = 0; d < sums.size(); ++d) {
      returns_of[d] = sums[d].episode_return;
      steps_of[d] = sums[d].steps;
      steps += static_cast<uint64_t>(sums[d].steps);
    }
  };
  write("return_plus", "steps_plus", plus_);
  write("return_minus", "steps_minus", minus_);
  if (counts_observations_) {
    moments_->WriteWords(fragment_.values<int64_t>("obs_sum"), fragment_.values<int64_t>("obs_square_sum"));
  }
  v1::FragmentHeader& header = fragment_.header();
  header.set_env_steps(steps);
  if (timed_.steps > 0) {
    const double steps_per_timed = static_cast<double>(steps) / static_cast<double>(timed_.steps);
    header.mutable_stage_seconds()->set_inference(steps_per_timed * absl::ToDoubleSeconds(timed_.inference));
  }
  return fragment_.Finish();
}

}  // namespace skein
