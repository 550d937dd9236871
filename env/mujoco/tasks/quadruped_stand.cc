// SPDX-License-Identifier: Apache-2.0
// QuadrupedStand-v0: a body on four legs gets up from a crouch and stands, at 167 decisions a second, also when it is
// pushed.
// 15 positions: torso x, y, z, orientation (quaternion w, x, y, z), then hip and knee of each leg: front left, front
// right, back left, back right. 14 velocities: 6 of the torso, 8 of the joints. Eight motors, as the joints.
// obs `full`: positions and velocities; `joints`: the 8 joint positions and all velocities.
#include "env/mujoco/task.h"
#include "env/mujoco/tasks/quadruped_crouch.h"
#include "env/mujoco/tasks/quadruped_pushes.h"
#include "env/mujoco/tasks/quadruped_reward.h"

namespace skein {
namespace embedded {
absl::string_view quadruped_stand_xml();
}  // namespace embedded

namespace {

constexpr int kPositions = 15;
constexpr int kVelocities = 14;

// Columns of MujocoView::episode: steps, then those of the reward and of the pushes.
enum Column {
  kSteps,
  kReward,
  kPush = kReward + quadruped::kRewardColumns,
  kColumns = kPush + quadruped::kPushColumns,
};

class QuadrupedStand final : public MujocoTask {
 public:
  explicit QuadrupedStand(MujocoArguments& arguments)
      : QuadrupedStand(arguments, arguments.Choice("observation", {"full", "joints"}) == 1 ? quadruped::kJoints : 0) {}

  void Start(RandomStream& random, double* qpos, double*) const override {
    quadruped::Crouch(random, start_knee_, noise_, qpos);
  }

  void StartEpisode(RandomStream& random, double* episode) const override {
    quadruped::Pushes::Start(random, episode + kPush);
  }

  void Disturb(const MujocoView& view, double* qvel) const override {
    pushes_.Apply(view.episode[kSteps], StepSeconds(view), view.episode + kPush, qvel);
    ++view.episode[kSteps];
  }

  MujocoOutcome Judge(const MujocoView& view, const std::array<double, 3>&, const float* action,
                      double* terms) const override {
    return reward_.Judge(view.qpos, view.qvel, action, StepSeconds(view), view.episode + kReward, terms);
  }

  void Observe(const MujocoView& view, float* obs) const override {
    obs = Write(view.qpos + skipped_, kPositions - skipped_, obs);
    Write(view.qvel, kVelocities, obs);
  }

 private:
  QuadrupedStand(MujocoArguments& arguments, int skipped)
      : MujocoTask({.id = "QuadrupedStand-v0",
                    .summary = "Get up from a crouch on four legs and stand, also when pushed (MuJoCo).",
                    .mjcf = embedded::quadruped_stand_xml(),
                    .positions = kPositions,
                    .velocities = kVelocities,
                    .controls = quadruped::kMotors,
                    .obs_size = kPositions - skipped + kVelocities,
                    .velocity_columns = ColumnRange(kPositions - skipped, kVelocities),
                    .frame_skip = 3,
                    .episode_columns = kColumns,
                    .reward_terms = quadruped::Reward::Terms(),
                    .camera = {.track_body = "torso", .height = 0.3, .distance = 3}},
                   arguments),
        skipped_(skipped),
        noise_(arguments.NotNegative("reset_noise_scale", 0.02)),
        start_knee_(arguments.Number("start_knee", 0.8)),
        pushes_{arguments.NotNegative("push_speed", 0), arguments.Between("push_interval_range", {1, 2})},
        reward_(arguments) {}

  double StepSeconds(const MujocoView& view) const { return facts().frame_skip * view.timestep; }

  const int skipped_;                // Columns of qpos that are not observed.
  const double noise_, start_knee_;  // Shares of the joints' ranges.
  const quadruped::Pushes pushes_;
  const quadruped::Reward reward_;
};

}  // namespace

std::unique_ptr<const MujocoTask> MakeQuadrupedStand(MujocoArguments& arguments) {
  return std::make_unique<QuadrupedStand>(arguments);
}

}  // namespace skein
