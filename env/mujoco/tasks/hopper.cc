// SPDX-License-Identifier: Apache-2.0
// Hopper-v5: a planar leg hops to the right, at 125 decisions a second, until it falls.
// Erez, Tassa, Todorov 2011, "Infinite-horizon model predictive control"; numbers as in Gymnasium's version 5.
// 6 degrees of freedom, in this order: trunk x, z, pitch; hip, knee, ankle.
// obs: the positions (without x by default), then the 6 velocities within [-10, 10]. Three motors: hip, knee, ankle.
#include <limits>

#include "env/mujoco/task.h"

namespace skein {
namespace embedded {
absl::string_view hopper_xml();
}  // namespace embedded

namespace {

constexpr int kDof = 6;
constexpr int kMotors = 3;
constexpr double kLargestVelocity = 10;  // As observed.

class Hopper final : public MujocoTask {
 public:
  explicit Hopper(MujocoArguments& arguments)
      : Hopper(arguments, arguments.Flag("exclude_current_positions_from_observation", true) ? 1 : 0) {}

  void Start(RandomStream& random, double* qpos, double* qvel) const override {
    AddUniform(random, reset_noise_, kDof, qpos);
    AddUniform(random, reset_noise_, kDof, qvel);
  }

  MujocoOutcome Judge(const MujocoView& view, const std::array<double, 3>& velocity, const float* action,
                      double* terms) const override {
    const bool healthy = IsHealthy(view);
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
  Hopper(MujocoArguments& arguments, int skipped)
      : MujocoTask({.id = "Hopper-v5",
                    .summary = "Hop to the right on one planar leg without falling (MuJoCo).",
                    .mjcf = embedded::hopper_xml(),
                    .positions = kDof,
                    .velocities = kDof,
                    .controls = kMotors,
                    .obs_size = 2 * kDof - skipped,
                    .frame_skip = 4,
                    .reward_threshold = 3800,
                    .reward_terms = {"reward_forward", "reward_ctrl", "reward_survive"},
                    .x_velocity_metric = true,
                    .camera = {.track_body = "trunk", .height = 0.8, .distance = 3}},
                   arguments),
        skipped_(skipped),
        forward_weight_(arguments.Number("forward_reward_weight", 1)),
        control_weight_(arguments.Number("ctrl_cost_weight", 1e-3)),
        healthy_reward_(arguments.Number("healthy_reward", 1)),
        reset_noise_(arguments.NotNegative("reset_noise_scale", 5e-3)),
        terminate_(arguments.Flag("terminate_when_unhealthy", true)),
        state_(arguments.Between("healthy_state_range", {-100, 100})),
        z_(arguments.Between("healthy_z_range", {0.7, std::numeric_limits<double>::infinity()})),
        pitch_(arguments.Between("healthy_angle_range", {-0.2, 0.2})) {}

  bool IsHealthy(const MujocoView& view) const {
    const auto within = [](double value, const MujocoArguments::Range& range) {
      return range[0] < value && value < range[1];
    };
    bool healthy = within(view.qpos[1], z_) && within(view.qpos[2], pitch_);
    // Of all of the state but x and z.
    for (int i = 2; i < kDof; ++i) healthy = healthy && within(view.qpos[i], state_);
    for (int i = 0; i < kDof; ++i) healthy = healthy && within(view.qvel[i], state_);
    return healthy;
  }

  const int skipped_;
  const double forward_weight_, control_weight_, healthy_reward_, reset_noise_;
  const bool terminate_;
  const MujocoArguments::Range state_, z_, pitch_;  // -, m, rad
};

}  // namespace

std::unique_ptr<const MujocoTask> MakeHopper(MujocoArguments& arguments) { return std::make_unique<Hopper>(arguments); }

}  // namespace skein
