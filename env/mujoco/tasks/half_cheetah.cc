// SPDX-License-Identifier: Apache-2.0
// HalfCheetah-v5: a planar animal with two legs runs to the right, at 20 decisions a second; it never terminates.
// Wawrzynski 2009, "A cat-like robot real-time learning to run"; numbers as in Gymnasium's version 5.
// 9 degrees of freedom, in this order: trunk x, z, pitch; back hip, knee, ankle; front hip, knee, ankle.
// obs: the 8 positions after x, then the 9 velocities. Six motors, one of each leg joint in the same order.
#include "env/mujoco/task.h"

namespace skein {
namespace embedded {
absl::string_view half_cheetah_xml();
}  // namespace embedded

namespace {

constexpr int kDof = 9;
constexpr int kMotors = 6;
constexpr double kControlCost = 0.1;
constexpr double kResetNoise = 0.1;

class HalfCheetah final : public MujocoTask {
 public:
  HalfCheetah()
      : MujocoTask({.id = "HalfCheetah-v5",
                    .summary = "Run to the right with a planar two-legged animal (MuJoCo).",
                    .mjcf = embedded::half_cheetah_xml(),
                    .positions = kDof,
                    .velocities = kDof,
                    .controls = kMotors,
                    .obs_size = 2 * kDof - 1,
                    .frame_skip = 5,
                    .reward_threshold = 4800,
                    .total_mass = 14,
                    .camera = {.track_body = "trunk"}}) {}

  void Start(RandomStream& random, double* qpos, double* qvel) const override {
    for (int i = 0; i < kDof; ++i) qpos[i] += random.Uniform(-kResetNoise, kResetNoise);
    for (int i = 0; i < kDof; ++i) qvel[i] = kResetNoise * random.Normal();
  }

  MujocoOutcome Judge(const MujocoView&, const std::array<double, 3>& velocity, const float* action,
                      double*) const override {
    double effort = 0;
    for (int i = 0; i < kMotors; ++i) {
      const double control = action[i];
      effort += control * control;
    }
    return {.reward = velocity[0] - kControlCost * effort};
  }

  void Observe(const MujocoView& view, float* obs) const override {
    for (int i = 1; i < kDof; ++i) *obs++ = static_cast<float>(view.qpos[i]);
    for (int i = 0; i < kDof; ++i) *obs++ = static_cast<float>(view.qvel[i]);
  }
};

}  // namespace

const MujocoTask& HalfCheetahTask() {
  static const HalfCheetah task;
  return task;
}

}  // namespace skein
