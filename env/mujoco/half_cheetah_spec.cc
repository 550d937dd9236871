// SPDX-License-Identifier: Apache-2.0
#include "env/mujoco/half_cheetah.h"

namespace skein {
namespace {

constexpr int kDof = 9;
constexpr int kMotors = 6;

}  // namespace

const EnvSpec& HalfCheetahSpec() {
  static const EnvSpec spec = {.id = "HalfCheetah-v5",
                               .obs_size = 2 * kDof - 1,
                               .action_size = kMotors,
                               .action_low = std::vector<float>(kMotors, -1.0f),
                               .action_high = std::vector<float>(kMotors, 1.0f),
                               .state_size = 1 + 3 * kDof,
                               .max_episode_steps = 1000,
                               .reward_threshold = 4800};
  return spec;
}

}  // namespace skein
