// SPDX-License-Identifier: Apache-2.0
#include "env/mujoco/task.h"

#include <utility>

namespace skein {

// One line for each file of env/mujoco/tasks.
const MujocoTask& HalfCheetahTask();
const MujocoTask& Walker2dTask();

std::vector<const MujocoTask*> MujocoTasks() {
  return {
      &HalfCheetahTask(),
      &Walker2dTask(),
  };
}

namespace {

EnvSpec MakeSpec(const MujocoTask::Facts& facts) {
  return {.id = facts.id,
          .obs_size = facts.obs_size,
          .action_size = facts.controls,
          .action_low = std::vector<float>(facts.controls, -facts.action_bound),
          .action_high = std::vector<float>(facts.controls, facts.action_bound),
          .state_size = 1 + facts.positions + 2 * facts.velocities + static_cast<int>(facts.reward_terms.size()),
          .max_episode_steps = facts.max_episode_steps,
          .reward_threshold = facts.reward_threshold,
          .episode_metrics = facts.reward_terms};
}

}  // namespace

MujocoTask::MujocoTask(Facts facts) : facts_(std::move(facts)), spec_(MakeSpec(facts_)) {}

const MujocoTask* FindMujocoTask(const std::string& env_id) {
  for (const MujocoTask* task : MujocoTasks()) {
    if (task->facts().id == env_id) return task;
  }
  return nullptr;
}

}  // namespace skein
