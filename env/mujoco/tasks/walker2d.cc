// SPDX-License-Identifier: Apache-2.0
// Walker2d-v5: a planar body on two legs walks to the right, at 125 decisions a second, until it falls.
// Erez, Tassa, Todorov 2011, "Infinite-horizon model predictive control"; numbers as in Gymnasium's version 5.
// 9 degrees of freedom, in this order: trunk x, z, pitch; right hip, knee, ankle; left hip, knee, ankle.
// obs: the 8 positions after x, then the 9 velocities within [-10, 10]. Six motors, one of each leg joint in the same
// order.
#include <algorithm>

#include "env/mujoco/task.h"

namespace skein {
namespace embedded {
absl::string_view walker2d_xml();
}  // namespace embedded

namespace {

constexpr int kDof = 9;
constexpr int kMotors = 6;
constexpr double kControlCost = 1e-3;
constexpr double kHealthyReward = 1;
constexpr double kResetNoise = 5e-3;
constexpr double kLowest = 0.8, kHighest = 2;  // z of the trunk, m.
constexpr double kLargestPitch = 1;            // rad
constexpr double kLargestVelocity = 10;        // As observed.

class Walker2d final : public MujocoTask {
 public:
  Walker2d()
      : MujocoTask({.id = "Walker2d-v5",
                    .summary = "Walk to the right on two planar legs without falling (MuJoCo).",
                    .mjcf = embedded::walker2d_xml(),
                    .positions = kDof,
                    .velocities = kDof,
                    .controls = kMotors,
                    .obs_size = 2 * kDof - 1,
                    .frame_skip = 4,
                    .reward_terms = {"reward_forward", "reward_ctrl", "reward_survive"},
                    .camera = {.track_body = "trunk", .height = 0.8}}) {}

  void Start(RandomStream& random, double* qpos, double* qvel) const override {
    for (int i = 0; i < kDof; ++i) qpos[i] += random.Uniform(-kResetNoise, kResetNoise);
    for (int i = 0; i < kDof; ++i) qvel[i] += random.Uniform(-kResetNoise, kResetNoise);
  }

  MujocoOutcome Judge(const MujocoView& view, const std::array<double, 3>& velocity, const float* action,
                      double* terms) const override {
    double effort = 0;
    for (int i = 0; i < kMotors; ++i) effort += double{action[i]} * action[i];
    const double z = view.qpos[1], pitch = view.qpos[2];
    const bool healthy = kLowest < z && z < kHighest && -kLargestPitch < pitch && pitch < kLargestPitch;
    terms[0] = velocity[0];
    terms[1] = -kControlCost * effort;
    terms[2] = healthy ? kHealthyReward : 0;
    return {.reward = terms[0] + terms[2] + terms[1], .terminated = !healthy};
  }

  void Observe(const MujocoView& view, float* obs) const override {
    for (int i = 1; i < kDof; ++i) *obs++ = static_cast<float>(view.qpos[i]);
    for (int i = 0; i < kDof; ++i) {
      *obs++ = static_cast<float>(std::clamp(view.qvel[i], -kLargestVelocity, kLargestVelocity));
    }
  }
};

}  // namespace

const MujocoTask& Walker2dTask() {
  static const Walker2d task;
  return task;
}

}  // namespace skein
