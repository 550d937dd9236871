// SPDX-License-Identifier: Apache-2.0
// Ant-v5: a body on four legs walks to the right, at 20 decisions a second, until its height is no longer healthy.
// Schulman et al. 2016, "High-dimensional continuous control using generalized advantage estimation"; numbers as in
// Gymnasium's version 5.
// 15 positions: torso x, y, z, orientation (quaternion w, x, y, z), then hip and ankle of each leg: front left, front
// right, back left, back right. 14 velocities: 6 of the torso, 8 of the joints. Eight motors, hip and ankle of each
// leg: back right, front left, front right, back left. obs: the positions (without x and y by default), the velocities,
// and by default the contact forces on each body but the world, 6 for each, clipped.
#include <algorithm>

#include "env/mujoco/task.h"

namespace skein {
namespace embedded {
absl::string_view ant_xml();
}  // namespace embedded

namespace {

constexpr int kPositions = 15;
constexpr int kVelocities = 14;
constexpr int kMotors = 8;
constexpr int kBodies = 14;

class Ant final : public MujocoTask {
 public:
  explicit Ant(MujocoArguments& arguments)
      : Ant(arguments, arguments.Flag("exclude_current_positions_from_observation", true) ? 2 : 0,
            arguments.Flag("include_cfrc_ext_in_observation", true),
            arguments.model() != nullptr ? arguments.model()->bodies : kBodies) {}

  void Start(RandomStream& random, double* qpos, double* qvel) const override {
    AddUniform(random, reset_noise_, kPositions, qpos);
    for (int i = 0; i < kVelocities; ++i) qvel[i] += reset_noise_ * random.Normal();
  }

  std::array<double, 3> Place(const MujocoView& view) const override {
    const double* const place = view.xpos + 3 * view.named[0];
    return {place[0], place[1], place[2]};
  }

  MujocoOutcome Judge(const MujocoView& view, const std::array<double, 3>& velocity, const float* action,
                      double* terms) const override {
    const bool healthy = z_[0] <= view.qpos[2] && view.qpos[2] <= z_[1];
    double contact = 0;
    for (int i = 0; i < 6 * view.bodies; ++i) {
      const double force = std::clamp(view.cfrc_ext[i], force_[0], force_[1]);
      contact += force * force;
    }
    terms[0] = forward_weight_ * velocity[0];
    terms[1] = -control_weight_ * SumOfSquares(action, kMotors);
    terms[2] = -contact_weight_ * contact;
    terms[3] = healthy ? healthy_reward_ : 0;
    return {.reward = terms[0] + terms[3] + (terms[1] + terms[2]), .terminated = terminate_ && !healthy};
  }

  void Observe(const MujocoView& view, float* obs) const override {
    obs = Write(view.qpos + skipped_, kPositions - skipped_, obs);
    obs = Write(view.qvel, kVelocities, obs);
    if (contact_columns_) WriteClipped(view.cfrc_ext + 6, 6 * (view.bodies - 1), force_[0], force_[1], obs);
  }

 private:
  Ant(MujocoArguments& arguments, int skipped, bool contact_columns, int bodies)
      : MujocoTask({.id = "Ant-v5",
                    .summary = "Walk to the right on four legs (MuJoCo).",
                    .mjcf = embedded::ant_xml(),
                    .positions = kPositions,
                    .velocities = kVelocities,
                    .controls = kMotors,
                    .counts = {.bodies = kBodies},
                    .obs_size = kPositions - skipped + kVelocities + (contact_columns ? 6 * (bodies - 1) : 0),
                    .velocity_columns = ColumnRange(kPositions - skipped, kVelocities),
                    .frame_skip = 5,
                    .reward_threshold = 6000,
                    .reads = {MujocoArray::kXpos, MujocoArray::kCfrcExt},
                    .named_bodies = {arguments.Text("main_body", "1")},
                    .reward_terms = {"reward_forward", "reward_ctrl", "reward_contact", "reward_survive"},
                    .info = {.x_velocity = true, .last = {XPosition(), YPosition(), DistanceFromOrigin(), YVelocity()}},
                    .camera = {.track_body = "torso"}},
                   arguments),
        skipped_(skipped),
        contact_columns_(contact_columns),
        forward_weight_(arguments.Number("forward_reward_weight", 1)),
        control_weight_(arguments.Number("ctrl_cost_weight", 0.5)),
        contact_weight_(arguments.Number("contact_cost_weight", 5e-4)),
        healthy_reward_(arguments.Number("healthy_reward", 1)),
        reset_noise_(arguments.NotNegative("reset_noise_scale", 0.1)),
        terminate_(arguments.Flag("terminate_when_unhealthy", true)),
        z_(arguments.Between("healthy_z_range", {0.2, 1})),
        force_(arguments.Between("contact_force_range", {-1, 1})) {}

  const int skipped_;
  const bool contact_columns_;
  const double forward_weight_, control_weight_, contact_weight_, healthy_reward_, reset_noise_;
  const bool terminate_;
  const MujocoArguments::Range z_, force_;  // m, N or N m
};

}  // namespace

std::unique_ptr<const MujocoTask> MakeAnt(MujocoArguments& arguments) { return std::make_unique<Ant>(arguments); }

}  // namespace skein
