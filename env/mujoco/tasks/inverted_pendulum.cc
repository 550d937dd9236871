// SPDX-License-Identifier: Apache-2.0
// InvertedPendulum-v5: a cart on a rail balances a pole, at 25 decisions a second, until the pole leans too far.
// Barto, Sutton, Anderson 1983, "Neuronlike adaptive elements that can solve difficult learning control problems";
// numbers as in Gymnasium's version 5.
// obs: x of the cart, angle of the pole, then their velocities. One motor pushes the cart.
#include <cmath>

#include "env/mujoco/task.h"

namespace skein {
namespace embedded {
absl::string_view inverted_pendulum_xml();
}  // namespace embedded

namespace {

constexpr int kDof = 2;
constexpr double kLargestAngle = 0.2;  // rad

class InvertedPendulum final : public MujocoTask {
 public:
  explicit InvertedPendulum(MujocoArguments& arguments)
      : MujocoTask({.id = "InvertedPendulum-v5",
                    .summary = "Balance a pole on a cart that a motor pushes (MuJoCo).",
                    .mjcf = embedded::inverted_pendulum_xml(),
                    .positions = kDof,
                    .velocities = kDof,
                    .controls = 1,
                    .obs_size = 2 * kDof,
                    .velocity_columns = ColumnRange(kDof, kDof),
                    .action_bound = 3,
                    .frame_skip = 2,
                    .reward_threshold = 950,
                    .reward_terms = {"reward_survive"},
                    .camera = {.track_body = "cart", .height = 0.2, .distance = 2.5}},
                   arguments),
        reset_noise_(arguments.NotNegative("reset_noise_scale", 0.01)) {}

  void Start(RandomStream& random, double* qpos, double* qvel) const override {
    AddUniform(random, reset_noise_, kDof, qpos);
    AddUniform(random, reset_noise_, kDof, qvel);
  }

  MujocoOutcome Judge(const MujocoView& view, const std::array<double, 3>&, const float*,
                      double* terms) const override {
    const bool fallen = std::abs(view.qpos[1]) > kLargestAngle;
    terms[0] = fallen ? 0 : 1;
    return {.reward = terms[0], .terminated = fallen};
  }

  void Observe(const MujocoView& view, float* obs) const override {
    obs = Write(view.qpos, kDof, obs);
    Write(view.qvel, kDof, obs);
  }

 private:
  const double reset_noise_;
};

}  // namespace

std::unique_ptr<const MujocoTask> MakeInvertedPendulum(MujocoArguments& arguments) {
  return std::make_unique<InvertedPendulum>(arguments);
}

}  // namespace skein
