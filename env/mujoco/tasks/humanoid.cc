// SPDX-License-Identifier: Apache-2.0
// Humanoid-v5: a person walks to the right, at 67 decisions a second, until the torso is too low or too high.
// Tassa, Erez, Todorov 2012, "Synthesis and stabilization of complex behaviors through online trajectory optimization";
// numbers as in Gymnasium's version 5. Joints and observations: humanoid_columns.h.
#include <algorithm>
#include <limits>

#include "env/mujoco/tasks/humanoid_columns.h"

namespace skein {
namespace embedded {
absl::string_view humanoid_xml();
}  // namespace embedded

namespace {

class Humanoid final : public MujocoTask {
 public:
  explicit Humanoid(MujocoArguments& arguments) : Humanoid(arguments, HumanoidColumns(arguments)) {}

  void Start(RandomStream& random, double* qpos, double* qvel) const override {
    AddUniform(random, reset_noise_, HumanoidColumns::kPositions, qpos);
    AddUniform(random, reset_noise_, HumanoidColumns::kVelocities, qvel);
  }

  // The centre of mass.
  std::array<double, 3> Place(const MujocoView& view) const override {
    double sum[2] = {0, 0}, mass = 0;
    for (int body = 0; body < view.bodies; ++body) {
      for (int i = 0; i < 2; ++i) sum[i] += view.body_mass[body] * view.xipos[3 * body + i];
      mass += view.body_mass[body];
    }
    return {sum[0] / mass, sum[1] / mass, 0};
  }

  MujocoOutcome Judge(const MujocoView& view, const std::array<double, 3>& velocity, const float* action,
                      double* terms) const override {
    const bool healthy = z_[0] < view.qpos[2] && view.qpos[2] < z_[1];
    const double contact = contact_weight_ * SumOfSquares(view.cfrc_ext, 6 * view.bodies);
    terms[0] = healthy ? healthy_reward_ : 0;
    terms[1] = forward_weight_ * velocity[0];
    terms[2] = -control_weight_ * SumOfSquares(action, HumanoidColumns::kMotors);
    terms[3] = -std::clamp(contact, contact_[0], contact_[1]);
    return {.reward = terms[1] + terms[0] + (terms[2] + terms[3]), .terminated = terminate_ && !healthy};
  }

  void Observe(const MujocoView& view, float* obs) const override { columns_.Write(view, obs); }

 private:
  Humanoid(MujocoArguments& arguments, const HumanoidColumns& columns)
      : MujocoTask({.id = "Humanoid-v5",
                    .summary = "Walk to the right as a person without falling (MuJoCo).",
                    .mjcf = embedded::humanoid_xml(),
                    .positions = HumanoidColumns::kPositions,
                    .velocities = HumanoidColumns::kVelocities,
                    .controls = HumanoidColumns::kMotors,
                    .bodies = HumanoidColumns::kBodies,
                    .obs_size = columns.size(),
                    .action_bound = 0.4f,
                    .frame_skip = 5,
                    .reads = {MujocoArray::kXipos, MujocoArray::kCinert, MujocoArray::kCvel, MujocoArray::kQfrcActuator,
                              MujocoArray::kCfrcExt},
                    .reward_terms = {"reward_survive", "reward_forward", "reward_ctrl", "reward_contact"},
                    .x_velocity_metric = true,
                    .camera = {.track_body = "torso", .height = 1}},
                   arguments),
        columns_(columns),
        forward_weight_(arguments.Number("forward_reward_weight", 1.25)),
        control_weight_(arguments.Number("ctrl_cost_weight", 0.1)),
        contact_weight_(arguments.Number("contact_cost_weight", 5e-7)),
        healthy_reward_(arguments.Number("healthy_reward", 5)),
        reset_noise_(arguments.NotNegative("reset_noise_scale", 1e-2)),
        terminate_(arguments.Flag("terminate_when_unhealthy", true)),
        contact_(arguments.Between("contact_cost_range", {-std::numeric_limits<double>::infinity(), 10})),
        z_(arguments.Between("healthy_z_range", {1, 2})) {}

  const HumanoidColumns columns_;
  const double forward_weight_, control_weight_, contact_weight_, healthy_reward_, reset_noise_;
  const bool terminate_;
  const MujocoArguments::Range contact_, z_;  // -, m
};

}  // namespace

std::unique_ptr<const MujocoTask> MakeHumanoid(MujocoArguments& arguments) {
  return std::make_unique<Humanoid>(arguments);
}

}  // namespace skein
