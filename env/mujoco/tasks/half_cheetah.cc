// SPDX-License-Identifier: Apache-2.0
// HalfCheetah-v5: a planar animal with two legs runs to the right, at 20 decisions a second; it never terminates.
// Wawrzynski 2009, "A cat-like robot real-time learning to run"; numbers as in Gymnasium's version 5.
// 9 degrees of freedom, in this order: trunk x, z, pitch; back hip, knee, ankle; front hip, knee, ankle.
// obs: the positions (without x by default), then the 9 velocities. Six motors, one of each leg joint in the same
// order.
#include "env/mujoco/task.h"

namespace skein {
namespace embedded {
absl::string_view half_cheetah_xml();
}  // namespace embedded

namespace {

constexpr int kDof = 9;
constexpr int kMotors = 6;

class HalfCheetah final : public MujocoTask {
 public:
  explicit HalfCheetah(MujocoArguments& arguments)
      : HalfCheetah(arguments, arguments.Flag("exclude_current_positions_from_observation", true) ? 1 : 0) {}

  void Start(RandomStream& random, double* qpos, double* qvel) const override {
    AddUniform(random, reset_noise_, kDof, qpos);
    for (int i = 0; i < kDof; ++i) qvel[i] = reset_noise_ * random.Normal();
  }

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
  HalfCheetah(MujocoArguments& arguments, int skipped)
      : MujocoTask({.id = "HalfCheetah-v5",
                    .summary = "Run to the right with a planar two-legged animal (MuJoCo).",
                    .mjcf = embedded::half_cheetah_xml(),
                    .positions = kDof,
                    .velocities = kDof,
                    .controls = kMotors,
                    .obs_size = 2 * kDof - skipped,
                    .velocity_columns = ColumnRange(kDof - skipped, kDof),
                    .frame_skip = 5,
                    .reward_threshold = 4800,
                    .total_mass = 14,
                    .reward_terms = {"reward_forward", "reward_ctrl"},
                    .info = {.x_velocity = true, .last = {XPosition()}},
                    .camera = {.track_body = "trunk"}},
                   arguments),
        skipped_(skipped),
        forward_weight_(arguments.Number("forward_reward_weight", 1)),
        control_weight_(arguments.Number("ctrl_cost_weight", 0.1)),
        reset_noise_(arguments.NotNegative("reset_noise_scale", 0.1)) {}

  const int skipped_;
  const double forward_weight_, control_weight_, reset_noise_;
};

}  // namespace

std::unique_ptr<const MujocoTask> MakeHalfCheetah(MujocoArguments& arguments) {
  return std::make_unique<HalfCheetah>(arguments);
}

}  // namespace skein
