// SPDX-License-Identifier: Apache-2.0
// HumanoidStandup-v5: a person who lies on the ground stands up, at 67 decisions a second; it never terminates.
// Tassa, Erez, Todorov 2012, "Synthesis and stabilization of complex behaviors through online trajectory optimization";
// numbers as in Gymnasium's version 5. Joints and observations: humanoid_columns.h.
#include <algorithm>
#include <limits>

#include "env/mujoco/tasks/humanoid_columns.h"

namespace skein {
namespace embedded {
absl::string_view humanoid_standup_xml();
}  // namespace embedded

namespace {

class HumanoidStandup final : public MujocoTask {
 public:
  explicit HumanoidStandup(MujocoArguments& arguments) : HumanoidStandup(arguments, HumanoidColumns(arguments)) {}

  void Start(RandomStream& random, double* qpos, double* qvel) const override {
    AddUniform(random, reset_noise_, HumanoidColumns::kPositions, qpos);
    AddUniform(random, reset_noise_, HumanoidColumns::kVelocities, qvel);
  }

  // Gymnasium divides the height by the time step of the model, not by that of a decision.
  MujocoOutcome Judge(const MujocoView& view, const std::array<double, 3>&, const float* action,
                      double* terms) const override {
    const double impact = impact_weight_ * SumOfSquares(view.cfrc_ext, 6 * view.bodies);
    terms[0] = height_weight_ * (view.qpos[2] / view.timestep);
    terms[1] = -control_weight_ * SumOfSquares(action, HumanoidColumns::kMotors);
    terms[2] = -std::clamp(impact, impact_[0], impact_[1]);
    return {.reward = terms[0] + terms[1] + terms[2] + 1};
  }

  void Observe(const MujocoView& view, float* obs) const override { columns_.Write(view, obs); }

 private:
  HumanoidStandup(MujocoArguments& arguments, const HumanoidColumns& columns)
      : MujocoTask(
            {.id = "HumanoidStandup-v5",
             .summary = "Stand up from lying on the ground as a person (MuJoCo).",
             .mjcf = embedded::humanoid_standup_xml(),
             .positions = HumanoidColumns::kPositions,
             .velocities = HumanoidColumns::kVelocities,
             .controls = HumanoidColumns::kMotors,
             .bodies = HumanoidColumns::kBodies,
             .obs_size = columns.size(),
             .action_bound = 0.4f,
             .frame_skip = 5,
             .reads = {MujocoArray::kCinert, MujocoArray::kCvel, MujocoArray::kQfrcActuator, MujocoArray::kCfrcExt},
             .reward_terms = {"reward_linup", "reward_quadctrl", "reward_impact"},
             .camera = {.track_body = "torso", .height = 0.8}},
            arguments),
        columns_(columns),
        height_weight_(arguments.Number("uph_cost_weight", 1)),
        control_weight_(arguments.Number("ctrl_cost_weight", 0.1)),
        impact_weight_(arguments.Number("impact_cost_weight", 0.5e-6)),
        reset_noise_(arguments.NotNegative("reset_noise_scale", 1e-2)),
        impact_(arguments.Between("impact_cost_range", {-std::numeric_limits<double>::infinity(), 10})) {}

  const HumanoidColumns columns_;
  const double height_weight_, control_weight_, impact_weight_, reset_noise_;
  const MujocoArguments::Range impact_;
};

}  // namespace

std::unique_ptr<const MujocoTask> MakeHumanoidStandup(MujocoArguments& arguments) {
  return std::make_unique<HumanoidStandup>(arguments);
}

}  // namespace skein
