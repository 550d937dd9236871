// SPDX-License-Identifier: Apache-2.0
#include "learner/ranks/env_share.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace skein {
namespace {

absl::Status TooFewGroups(uint32_t num_envs, uint32_t envs_per_group, uint32_t ranks) {
  const uint32_t groups = num_envs / envs_per_group;
  std::string fits = absl::StrCat("rollout.num_envs of at least ", uint64_t{envs_per_group} * ranks);
  // The largest group size that gives every rank at least one group.
  uint32_t smaller = num_envs / ranks;
  while (smaller > 0 && num_envs % smaller != 0) --smaller;
  if (smaller > 0) absl::StrAppend(&fits, ", rollout.envs_per_runner of ", smaller);
  if (groups > 0) absl::StrAppend(&fits, ", or ", groups, groups == 1 ? " learner" : " learners");
  return absl::InvalidArgumentError(absl::StrCat(
      "rollout.num_envs ", num_envs, " in env groups of rollout.envs_per_runner ", envs_per_group, ": got ", groups,
      groups == 1 ? " group" : " groups", " for ", ranks, " learners, want one for each; what would fit: ", fits));
}

}  // namespace

absl::StatusOr<EnvShare> ShareOfRank(uint32_t num_envs, uint32_t envs_per_group, uint32_t rank, uint32_t ranks) {
  if (rank >= ranks) {
    return absl::InvalidArgumentError(absl::StrCat("learner rank: got ", rank, " of ", ranks, ", want less"));
  }
  if (envs_per_group == 0 || num_envs % envs_per_group != 0) {
    return absl::InvalidArgumentError(absl::StrCat("rollout.num_envs: got ", num_envs,
                                                   ", want a multiple of rollout.envs_per_runner ", envs_per_group));
  }
  const uint32_t groups = num_envs / envs_per_group;
  if (groups < ranks) return TooFewGroups(num_envs, envs_per_group, ranks);
  const uint32_t each = groups / ranks, over = groups % ranks;
  const uint32_t first = rank * each + std::min(rank, over), count = each + (rank < over ? 1 : 0);
  return EnvShare{first * envs_per_group, count * envs_per_group};
}

}  // namespace skein
