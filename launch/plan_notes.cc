// SPDX-License-Identifier: Apache-2.0
#include "launch/plan_notes.h"

#include "absl/strings/str_cat.h"
#include "base/config/algorithm_rules.h"

namespace skein {

std::string AutomaticNote(const std::optional<RunSizes>& before, uint32_t cores, uint32_t learners) {
  if (before) {
    return absl::StrCat("runners: ", before->runners, " with ", before->envs_per_runner,
                        " environments each, as in the run that this continues");
  }
  if (learners > cores) return absl::StrCat("runners: one for each of ", learners, " learners");
  return absl::StrCat("runners: one for each of ", cores, cores == 1 ? " core" : " cores",
                      "; `skein tune` would measure what suits this node");
}

std::string DeviceNote(const v1::RunConfig& config) {
  const v1::RolloutConfig& rollout = config.rollout();
  const v1::DirectionsConfig& directions = config.directions();
  if (!SearchesDirections(config)) {
    return absl::StrCat("no actors: ", rollout.num_envs(), " environments step on the learner's device, ",
                        rollout.steps_per_iteration() / rollout.num_envs(), " steps each in an iteration");
  }
  return absl::StrCat("no actors: ", directions.num_dirs(), " directions x 2 signs x ", directions.num_envs(),
                      directions.num_envs() == 1 ? " episode" : " episodes", " are played on the learner's device, ",
                      directions.dir_chunk() == 0 ? "all" : absl::StrCat(directions.dir_chunk(), " directions"),
                      " at once");
}

}  // namespace skein
