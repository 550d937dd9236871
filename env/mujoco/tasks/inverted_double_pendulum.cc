// SPDX-License-Identifier: Apache-2.0
// InvertedDoublePendulum-v5: a cart on a rail balances two poles on top of each other, at 20 decisions a second, until
// their tip is no higher than 1 m. Numbers as in Gymnasium's version 5.
// 3 degrees of freedom: x of the cart, angle of the lower pole, angle of the upper to the lower one.
// obs: x; sines, then cosines of both angles; the 3 velocities within [-10, 10]; the constraint force on the cart
// within
// [-10, 10]. One motor pushes the cart.
#include <cmath>

#include "env/mujoco/task.h"

namespace skein {
namespace embedded {
absl::string_view inverted_double_pendulum_xml();
}  // namespace embedded

namespace {

constexpr int kDof = 3;
constexpr int kObs = 9;
constexpr double kBound = 10;     // Of velocities and forces, as observed.
constexpr double kLowestTip = 1;  // m

class InvertedDoublePendulum final : public MujocoTask {
 public:
  explicit InvertedDoublePendulum(MujocoArguments& arguments)
      : MujocoTask({.id = "InvertedDoublePendulum-v5",
                    .summary = "Balance two poles on top of each other on a cart (MuJoCo).",
                    .mjcf = embedded::inverted_double_pendulum_xml(),
                    .positions = kDof,
                    .velocities = kDof,
                    .controls = 1,
                    .counts = {.sites = 1},
                    .obs_size = kObs,
                    .velocity_columns = ColumnRange(1 + 2 * (kDof - 1), kDof),
                    .frame_skip = 5,
                    .reward_threshold = 9100,
                    .reads = {MujocoArray::kQfrcConstraint, MujocoArray::kSiteXpos},
                    .reward_terms = {"reward_survive", "distance_penalty", "velocity_penalty"},
                    .camera = {.track_body = "cart", .height = 0.4}},
                   arguments),
        healthy_reward_(arguments.Number("healthy_reward", 10)),
        reset_noise_(arguments.NotNegative("reset_noise_scale", 0.1)) {}

  void Start(RandomStream& random, double* qpos, double* qvel) const override {
    AddUniform(random, reset_noise_, kDof, qpos);
    for (int i = 0; i < kDof; ++i) qvel[i] += reset_noise_ * random.Normal();
  }

  MujocoOutcome Judge(const MujocoView& view, const std::array<double, 3>&, const float*,
                      double* terms) const override {
    const double x = view.site_xpos[0], height = view.site_xpos[2];
    const double lower = view.qvel[1], upper = view.qvel[2];
    const bool fallen = height <= kLowestTip;
    terms[0] = fallen ? 0 : healthy_reward_;
    terms[1] = -(0.01 * (x * x) + (height - 2) * (height - 2));
    terms[2] = -(1e-3 * (lower * lower) + 5e-3 * (upper * upper));
    return {.reward = terms[0] + terms[1] + terms[2], .terminated = fallen};
  }

  void Observe(const MujocoView& view, float* obs) const override {
    *obs++ = static_cast<float>(view.qpos[0]);
    for (int i = 1; i < kDof; ++i) *obs++ = static_cast<float>(std::sin(view.qpos[i]));
    for (int i = 1; i < kDof; ++i) *obs++ = static_cast<float>(std::cos(view.qpos[i]));
    obs = WriteClipped(view.qvel, kDof, -kBound, kBound, obs);
    WriteClipped(view.qfrc_constraint, 1, -kBound, kBound, obs);
  }

 private:
  const double healthy_reward_, reset_noise_;
};

}  // namespace

std::unique_ptr<const MujocoTask> MakeInvertedDoublePendulum(MujocoArguments& arguments) {
  return std::make_unique<InvertedDoublePendulum>(arguments);
}

}  // namespace skein
