// SPDX-License-Identifier: Apache-2.0
#include "env/mujoco/tasks/planar_walker.h"

#include <utility>

namespace skein {
namespace {

constexpr int kTrunk = 3;                // Positions of the trunk, which no motor drives.
constexpr double kLargestVelocity = 10;  // As observed.

bool Within(double value, const MujocoArguments::Range& range) { return range[0] < value && value < range[1]; }

class PlanarWalker final : public MujocoTask {
 public:
  PlanarWalker(MujocoArguments& arguments, Facts facts, const PlanarHealth& health)
      : PlanarWalker(arguments, std::move(facts), health,
                     arguments.Flag("exclude_current_positions_from_observation", true) ? 1 : 0) {}

  void Start(RandomStream& random, double* qpos, double* qvel) const override {
    AddUniform(random, reset_noise_, dof_, qpos);
    AddUniform(random, reset_noise_, dof_, qvel);
  }

  MujocoOutcome Judge(const MujocoView& view, const std::array<double, 3>& velocity, const float* action,
                      double* terms) const override {
    const bool healthy = IsHealthy(view);
    terms[0] = forward_weight_ * velocity[0];
    terms[1] = -control_weight_ * SumOfSquares(action, dof_ - kTrunk);
    terms[2] = healthy ? healthy_reward_ : 0;
    return {.reward = terms[0] + terms[2] + terms[1], .terminated = terminate_ && !healthy};
  }

  void Observe(const MujocoView& view, float* obs) const override {
    obs = Write(view.qpos + skipped_, dof_ - skipped_, obs);
    WriteClipped(view.qvel, dof_, -kLargestVelocity, kLargestVelocity, obs);
  }

 private:
  PlanarWalker(MujocoArguments& arguments, Facts facts, const PlanarHealth& health, int skipped)
      : MujocoTask(Completed(std::move(facts), skipped), arguments),
        dof_(this->facts().positions),
        skipped_(skipped),
        forward_weight_(arguments.Number("forward_reward_weight", 1)),
        control_weight_(arguments.Number("ctrl_cost_weight", 1e-3)),
        healthy_reward_(arguments.Number("healthy_reward", 1)),
        reset_noise_(arguments.NotNegative("reset_noise_scale", 5e-3)),
        terminate_(arguments.Flag("terminate_when_unhealthy", true)),
        health_(health) {}

  static Facts Completed(Facts facts, int skipped) {
    facts.velocities = facts.positions;
    facts.controls = facts.positions - kTrunk;
    facts.obs_size = 2 * facts.positions - skipped;
    facts.velocity_columns = ColumnRange(facts.positions - skipped, facts.velocities);
    facts.frame_skip = 4;
    facts.reward_terms = {"reward_forward", "reward_ctrl", "reward_survive"};
    facts.info = {.x_velocity = true, .last = {XPosition(), ZDistanceFromOrigin(1)}};
    return facts;
  }

  bool IsHealthy(const MujocoView& view) const {
    bool healthy = Within(view.qpos[1], health_.z) && Within(view.qpos[2], health_.pitch);
    for (int i = 2; i < dof_; ++i) healthy = healthy && Within(view.qpos[i], health_.state);
    for (int i = 0; i < dof_; ++i) healthy = healthy && Within(view.qvel[i], health_.state);
    return healthy;
  }

  const int dof_, skipped_;
  const double forward_weight_, control_weight_, healthy_reward_, reset_noise_;
  const bool terminate_;
  const PlanarHealth health_;
};

}  // namespace

std::unique_ptr<const MujocoTask> MakePlanarWalker(MujocoArguments& arguments, MujocoTask::Facts facts,
                                                   const PlanarHealth& health) {
  return std::make_unique<PlanarWalker>(arguments, std::move(facts), health);
}

}  // namespace skein
