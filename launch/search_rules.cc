// SPDX-License-Identifier: Apache-2.0
#include "launch/search_rules.h"

#include <optional>
#include <string>

#include "absl/strings/str_cat.h"
#include "base/config/algorithm_rules.h"
#include "base/config/direction_rules.h"
#include "env/searchable.h"

namespace skein {

absl::Status CheckSearch(const v1::RunConfig& config, const EnvSpec& spec) {
  const bool on_device = config.sync().mode() == v1::SYNC_MODE_ON_DEVICE;
  if (absl::Status status = CheckSearchable(spec, on_device); !status.ok()) return status;
  const uint32_t limit = config.env().max_episode_steps();
  return MostEpisodeSteps(config, limit > 0 ? limit : static_cast<uint32_t>(spec.max_episode_steps)).status();
}

absl::Status CheckLearners(const v1::RunConfig& config, uint32_t learners) {
  if (learners <= 1) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("--learners: got ", learners, "; ", AlgorithmName(config),
                                                 " has one learner, whose work is little; start more actors instead"));
}

absl::Status CheckSizeFlags(const LaunchOptions& options, const v1::RunConfig& config) {
  const auto follows = [&](const char* flag, std::optional<uint64_t> value, uint32_t want, const char* setting) {
    if (!value || *value == want || *value == 0) return absl::OkStatus();
    return absl::InvalidArgumentError(absl::StrCat(flag, " ", *value, " cannot be given with ", AlgorithmName(config),
                                                   ", whose work is directions; try --set ", setting, "=", *value));
  };
  const v1::RolloutConfig& rollout = config.rollout();
  const absl::Status envs = follows("--envs", options.num_envs, rollout.num_envs(), "directions.num_dirs");
  if (!envs.ok()) return envs;
  return follows("--envs-per-runner", options.envs_per_runner, rollout.envs_per_runner(), "directions.dir_chunk");
}

}  // namespace skein
