// SPDX-License-Identifier: Apache-2.0
// HumanoidStandup-v5: a person who lies on the ground stands up, at 67 decisions a second; it never terminates.
// Tassa, Erez, Todorov 2012, "Synthesis and stabilization of complex behaviors through online trajectory optimization";
// numbers as in Gymnasium's version 5. Joints, observations and costs: humanoid_body.h.
#include "env/mujoco/tasks/humanoid_body.h"

namespace skein {
namespace embedded {
absl::string_view humanoid_standup_xml();
}  // namespace embedded

namespace {

class HumanoidStandup final : public HumanoidBody {
 public:
  explicit HumanoidStandup(MujocoArguments& arguments)
      : HumanoidBody(arguments,
                     {.id = "HumanoidStandup-v5",
                      .summary = "Stand up from lying on the ground as a person (MuJoCo).",
                      .mjcf = embedded::humanoid_standup_xml(),
                      .reward_terms = {"reward_linup", "reward_quadctrl", "reward_impact"},
                      .info = {.last = {ZDistanceFromOrigin(2)}},
                      .camera = {.track_body = "torso", .height = 0.8}},
                     "impact") {
    arguments.Number("uph_cost_weight", 1);  // Gymnasium takes it, too, and ignores it.
  }

  // Gymnasium divides the height by the time step of the model, not by that of a decision.
  MujocoOutcome Judge(const MujocoView& view, const std::array<double, 3>&, const float* action,
                      double* terms) const override {
    terms[0] = view.qpos[2] / view.timestep;
    terms[1] = -ControlCost(action);
    terms[2] = -ContactCost(view);
    return {.reward = terms[0] + terms[1] + terms[2] + 1};
  }
};

}  // namespace

std::unique_ptr<const MujocoTask> MakeHumanoidStandup(MujocoArguments& arguments) {
  return std::make_unique<HumanoidStandup>(arguments);
}

}  // namespace skein
