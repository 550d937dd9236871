// SPDX-License-Identifier: Apache-2.0
// Walker2d-v5: a planar body on two legs walks to the right, at 125 decisions a second, until it falls.
// Erez, Tassa, Todorov 2011, "Infinite-horizon model predictive control"; numbers as in Gymnasium's version 5.
// 9 degrees of freedom, in this order: trunk x, z, pitch; right hip, knee, ankle; left hip, knee, ankle.
// obs: the positions (without x by default), then the 9 velocities within [-10, 10]. Six motors, one of each leg joint
// in the same order.
#include "env/mujoco/task.h"

namespace skein {
namespace embedded {
absl::string_view walker2d_xml();
}  // namespace embedded

namespace {

constexpr int kDof = 9;
constexpr int kMotors = 6;
constexpr double kLargestVelocity = 10;  // As observed.

class Walker2d final : public MujocoTask {
 public:
  explicit Walker2d(MujocoArguments& arguments)
      : Walker2d(arguments, arguments.Flag("exclude_current_positions_from_observation", true) ? 1 : 0) {}

  void Start(RandomStream& random, double* qpos, double* qvel) const override {
    AddUniform(random, reset_noise_, kDof, qpos);
    AddUniform(random, reset_noise_, kDof, qvel);
  }

  MujocoOutcome Judge(const MujocoView& view, const std::array<double, 3>& velocity, const float* action,
                      double* terms) const override {
    const double z = view.qpos[1], pitch = view.qpos[2];
    const bool healthy = z_[0] < z && z < z_[1] && pitch_[0] < pitch && pitch < pitch_[1];
    terms[0] = forward_weight_ * velocity[0];
    terms[1] = -control_weight_ * SumOfSquares(action, kMotors);
    terms[2] = healthy ? healthy_reward_ : 0;
    return {.reward = terms[0] + terms[2] + terms[1], .terminated = terminate_ && !healthy};
  }

  void Observe(const MujocoView& view, float* obs) const override {
    obs = Write(view.qpos + skipped_, kDof - skipped_, obs);
    WriteClipped(view.qvel, kDof, -kLargestVelocity, kLargestVelocity, obs);
  }

 private:
  Walker2d(MujocoArguments& arguments, int skipped)
      : MujocoTask({.id = "Walker2d-v5",
                    .summary = "Walk to the right on two planar legs without falling (MuJoCo).",
                    .mjcf = embedded::walker2d_xml(),
                    .positions = kDof,
                    .velocities = kDof,
                    .controls = kMotors,
                    .obs_size = 2 * kDof - skipped,
                    .frame_skip = 4,
                    .reward_terms = {"reward_forward", "reward_ctrl", "reward_survive"},
                    .x_velocity_metric = true,
                    .camera = {.track_body = "trunk", .height = 0.8}},
                   arguments),
        skipped_(skipped),
        forward_weight_(arguments.Number("forward_reward_weight", 1)),
        control_weight_(arguments.Number("ctrl_cost_weight", 1e-3)),
        healthy_reward_(arguments.Number("healthy_reward", 1)),
        reset_noise_(arguments.NotNegative("reset_noise_scale", 5e-3)),
        terminate_(arguments.Flag("terminate_when_unhealthy", true)),
        z_(arguments.Between("healthy_z_range", {0.8, 2})),
        pitch_(arguments.Between("healthy_angle_range", {-1, 1})) {}

  const int skipped_;
  const double forward_weight_, control_weight_, healthy_reward_, reset_noise_;
  const bool terminate_;
  const MujocoArguments::Range z_, pitch_;  // m, rad
};

}  // namespace

std::unique_ptr<const MujocoTask> MakeWalker2d(MujocoArguments& arguments) {
  return std::make_unique<Walker2d>(arguments);
}

}  // namespace skein
