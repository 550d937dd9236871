// SPDX-License-Identifier: Apache-2.0
// Humanoid-v5: a person walks to the right, at 67 decisions a second, until the torso is too low or too high.
// Tassa, Erez, Todorov 2012, "Synthesis and stabilization of complex behaviors through online trajectory optimization";
// numbers as in Gymnasium's version 5. Joints, observations and costs: humanoid_body.h.
#include "env/mujoco/tasks/humanoid_body.h"

namespace skein {
namespace embedded {
absl::string_view humanoid_xml();
}  // namespace embedded

namespace {

class Humanoid final : public HumanoidBody {
 public:
  explicit Humanoid(MujocoArguments& arguments)
      : HumanoidBody(arguments,
                     {.id = "Humanoid-v5",
                      .summary = "Walk to the right as a person without falling (MuJoCo).",
                      .mjcf = embedded::humanoid_xml(),
                      .reads = {MujocoArray::kXipos},
                      .reward_terms = {"reward_survive", "reward_forward", "reward_ctrl", "reward_contact"},
                      .info = {.x_velocity = true, .last = {DistanceFromOrigin(), YVelocity()}},
                      .camera = {.track_body = "torso", .height = 1}},
                     "contact"),
        forward_weight_(arguments.Number("forward_reward_weight", 1.25)),
        healthy_reward_(arguments.Number("healthy_reward", 5)),
        terminate_(arguments.Flag("terminate_when_unhealthy", true)),
        z_(arguments.Between("healthy_z_range", {1, 2})) {}

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
    terms[0] = healthy ? healthy_reward_ : 0;
    terms[1] = forward_weight_ * velocity[0];
    terms[2] = -ControlCost(action);
    terms[3] = -ContactCost(view);
    return {.reward = terms[1] + terms[0] + (terms[2] + terms[3]), .terminated = terminate_ && !healthy};
  }

 private:
  const double forward_weight_, healthy_reward_;
  const bool terminate_;
  const MujocoArguments::Range z_;  // m
};

}  // namespace

std::unique_ptr<const MujocoTask> MakeHumanoid(MujocoArguments& arguments) {
  return std::make_unique<Humanoid>(arguments);
}

}  // namespace skein
