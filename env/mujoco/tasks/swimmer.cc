// SPDX-License-Identifier: Apache-2.0
// Swimmer-v5: three links swim to the right in a viscous fluid, at 25 decisions a second; it never terminates.
// Coulom 2002, "Reinforcement learning using neural networks, with applications to motor control"; numbers as in
// Gymnasium's version 5.
// 5 degrees of freedom, in this order: x, y and angle of the first link; first and second joint.
// obs: the positions (without x and y by default), then the 5 velocities. Two motors, one of each joint.
#include "env/mujoco/task.h"

namespace skein {
namespace embedded {
absl::string_view swimmer_xml();
}  // namespace embedded

namespace {

constexpr int kDof = 5;
constexpr int kMotors = 2;

class Swimmer final : public MujocoTask {
 public:
  explicit Swimmer(MujocoArguments& arguments)
      : Swimmer(arguments, arguments.Flag("exclude_current_positions_from_observation", true) ? 2 : 0) {}

  void Start(RandomStream& random, double* qpos, double* qvel) const override {
    AddUniform(random, reset_noise_, kDof, qpos);
    AddUniform(random, reset_noise_, kDof, qvel);
  }

  std::array<double, 3> Place(const MujocoView& view) const override { return {view.qpos[0], view.qpos[1], 0}; }

  MujocoOutcome Judge(const MujocoView&, const std::array<double, 3>& velocity, const float* action,
                      double* terms) const override {
    terms[0] = forward_weight_ * velocity[0];
    terms[1] = -control_weight_ * SumOfSquares(action, kMotors);
    return {.reward = terms[0] + terms[1]};
  }

  void Observe(const MujocoView& view, float* obs) const override {
    obs = Write(view.qpos + skipped_, kDof - skipped_, obs);
    Write(view.qvel, kDof, obs);
  }

 private:
  Swimmer(MujocoArguments& arguments, int skipped)
      : MujocoTask({.id = "Swimmer-v5",
                    .summary = "Swim to the right with three links in a fluid (MuJoCo).",
                    .mjcf = embedded::swimmer_xml(),
                    .positions = kDof,
                    .velocities = kDof,
                    .controls = kMotors,
                    .obs_size = 2 * kDof - skipped,
                    .velocity_columns = ColumnRange(kDof - skipped, kDof),
                    .frame_skip = 4,
                    .reward_threshold = 360,
                    .reward_terms = {"reward_forward", "reward_ctrl"},
                    .info = {.x_velocity = true, .last = {XPosition(), YPosition(), DistanceFromOrigin(), YVelocity()}},
                    .camera = {.track_body = "torso", .height = 0, .distance = 5, .elevation = -60}},
                   arguments),
        skipped_(skipped),
        forward_weight_(arguments.Number("forward_reward_weight", 1)),
        control_weight_(arguments.Number("ctrl_cost_weight", 1e-4)),
        reset_noise_(arguments.NotNegative("reset_noise_scale", 0.1)) {}

  const int skipped_;
  const double forward_weight_, control_weight_, reset_noise_;
};

}  // namespace

std::unique_ptr<const MujocoTask> MakeSwimmer(MujocoArguments& arguments) {
  return std::make_unique<Swimmer>(arguments);
}

}  // namespace skein
