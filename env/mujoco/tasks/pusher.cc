// SPDX-License-Identifier: Apache-2.0
// Pusher-v5: an arm of seven joints pushes a cylinder to a goal on a table, at 20 decisions a second; it never
// terminates, and an episode has 100 steps. Numbers as in Gymnasium's version 5.
// 11 degrees of freedom: the seven joints from the shoulder to the wrist; y and x of the cylinder; y and x of the goal,
// which does not move.
// obs: the joints, their velocities, then the places of fingertips, cylinder and goal. Seven motors, one of each joint.
#include <cmath>

#include "env/mujoco/task.h"

namespace skein {
namespace embedded {
absl::string_view pusher_xml();
}  // namespace embedded

namespace {

constexpr int kDof = 11;
constexpr int kJoints = 7;
constexpr int kBodies = 13;
constexpr double kVelocityNoise = 0.005;
constexpr double kNearest = 0.17;  // The cylinder begins farther from the goal than this, m.

class Pusher final : public MujocoTask {
 public:
  explicit Pusher(MujocoArguments& arguments)
      : MujocoTask({.id = "Pusher-v5",
                    .summary = "Push a cylinder to a goal with a robot arm (MuJoCo).",
                    .mjcf = embedded::pusher_xml(),
                    .positions = kDof,
                    .velocities = kDof,
                    .controls = kJoints,
                    .counts = {.bodies = kBodies},
                    .obs_size = 2 * kJoints + 9,
                    .velocity_columns = ColumnRange(kJoints, kJoints),
                    .action_bound = 2,
                    .frame_skip = 5,
                    .max_episode_steps = 100,
                    .reads = {MujocoArray::kXpos},
                    .named_bodies = {"tips_arm", "object", "goal"},
                    .reward_terms = {"reward_dist", "reward_ctrl", "reward_near"},
                    .camera = {.track_body = "goal", .height = -0.3, .distance = 2.5, .elevation = -35}},
                   arguments),
        near_weight_(arguments.Number("reward_near_weight", 0.5)),
        distance_weight_(arguments.Number("reward_dist_weight", 1)),
        control_weight_(arguments.Number("reward_control_weight", 0.1)) {}

  void Start(RandomStream& random, double* qpos, double* qvel) const override {
    double* const cylinder = qpos + kJoints;
    do {
      cylinder[0] = random.Uniform(-0.3, 0);
      cylinder[1] = random.Uniform(-0.2, 0.2);
    } while (std::hypot(cylinder[0], cylinder[1]) <= kNearest);
    cylinder[2] = cylinder[3] = 0;  // The goal.
    AddUniform(random, kVelocityNoise, kJoints, qvel);
  }

  MujocoOutcome Judge(const MujocoView& view, const std::array<double, 3>&, const float* action,
                      double* terms) const override {
    terms[0] = -Distance(view, 1, 2) * distance_weight_;
    terms[1] = -SumOfSquares(action, kJoints) * control_weight_;
    terms[2] = -Distance(view, 1, 0) * near_weight_;
    return {.reward = terms[0] + terms[1] + terms[2]};
  }

  void Observe(const MujocoView& view, float* obs) const override {
    obs = Write(view.qpos, kJoints, obs);
    obs = Write(view.qvel, kJoints, obs);
    for (int i = 0; i < 3; ++i) obs = Write(view.xpos + 3 * view.named[i], 3, obs);
  }

 private:
  // Between two of the named bodies, m.
  static double Distance(const MujocoView& view, int one, int other) {
    const double *const a = view.xpos + 3 * view.named[one], *const b = view.xpos + 3 * view.named[other];
    const double offset[3] = {a[0] - b[0], a[1] - b[1], a[2] - b[2]};
    return std::sqrt(SumOfSquares(offset, 3));
  }

  const double near_weight_, distance_weight_, control_weight_;
};

}  // namespace

std::unique_ptr<const MujocoTask> MakePusher(MujocoArguments& arguments) { return std::make_unique<Pusher>(arguments); }

}  // namespace skein
