// SPDX-License-Identifier: Apache-2.0
#include "sweep/first_rung.h"

#include <algorithm>
#include <cstdint>

#include "absl/strings/match.h"
#include "env/env_config.h"
#include "env/registry.h"

namespace skein {
namespace {

// Env steps after which each environment has ended an episode; 0 = not known.
uint64_t FirstEpisodeSteps(const v1::RunConfig& base) {
  const auto spec = FindEnvSpec(base.env().id(), MakeEnvOptions(base.env()));
  if (!spec.ok()) return 0;
  uint64_t limit = static_cast<uint64_t>(std::max(0, spec->max_episode_steps));
  const uint64_t given = base.env().max_episode_steps();
  if (given > 0) limit = limit > 0 ? std::min(limit, given) : given;
  return limit * base.rollout().num_envs();
}

}  // namespace

void ChooseFirstRung(const v1::RunConfig& base, v1::SweepConfig* config) {
  v1::SweepScheduler* const scheduler = config->mutable_scheduler();
  const bool halves = scheduler->kind() == v1::SWEEP_SCHEDULE_ASHA || scheduler->kind() == v1::SWEEP_SCHEDULE_HYPERBAND;
  if (!halves || scheduler->min_steps() > 0) return;
  const uint64_t reduction = scheduler->reduction(), total = base.total_steps();
  uint64_t least = total / (reduction * reduction * reduction);
  if (absl::StartsWith(config->metric(), "episode")) {
    least = std::max(least, std::min(FirstEpisodeSteps(base), total / reduction));
  }
  scheduler->set_min_steps(std::max<uint64_t>(1, least));
}

}  // namespace skein
