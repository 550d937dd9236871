// SPDX-License-Identifier: Apache-2.0
// Reacher-v5: an arm of two links on a table moves its fingertip to a target, at 50 decisions a second; it never
// terminates, and an episode has 50 steps. Numbers as in Gymnasium's version 5.
// 4 degrees of freedom: the two joints, then x and y of the target, which does not move.
// obs: cosines, then sines of both joints; x and y of the target; the joints' velocities; x and y of fingertip minus
// target. Two motors, one of each joint.
#include <cmath>

#include "env/mujoco/task.h"

namespace skein {
namespace embedded {
absl::string_view reacher_xml();
}  // namespace embedded

namespace {

constexpr int kDof = 4;
constexpr int kMotors = 2;
constexpr int kBodies = 5;
constexpr double kJointNoise = 0.1, kVelocityNoise = 0.005;
constexpr double kReach = 0.2;  // The target is at most so far from the centre, m.

class Reacher final : public MujocoTask {
 public:
  explicit Reacher(MujocoArguments& arguments)
      : MujocoTask({.id = "Reacher-v5",
                    .summary = "Move the fingertip of a two-link arm to a target (MuJoCo).",
                    .mjcf = embedded::reacher_xml(),
                    .positions = kDof,
                    .velocities = kDof,
                    .controls = kMotors,
                    .counts = {.bodies = kBodies},
                    .obs_size = 10,
                    .velocity_columns = ColumnRange(kMotors + kDof, kMotors),
                    .frame_skip = 2,
                    .max_episode_steps = 50,
                    .reward_threshold = -3.75,
                    .reads = {MujocoArray::kXpos},
                    .named_bodies = {"fingertip", "target"},
                    .reward_terms = {"reward_dist", "reward_ctrl"},
                    .camera = {.track_body = "upper_arm", .height = 0, .distance = 0.75, .elevation = -80}},
                   arguments),
        distance_weight_(arguments.Number("reward_dist_weight", 1)),
        control_weight_(arguments.Number("reward_control_weight", 1)) {}

  void Start(RandomStream& random, double* qpos, double* qvel) const override {
    AddUniform(random, kJointNoise, kDof, qpos);
    do {
      for (int i = kMotors; i < kDof; ++i) qpos[i] = random.Uniform(-kReach, kReach);
    } while (std::hypot(qpos[2], qpos[3]) >= kReach);
    AddUniform(random, kVelocityNoise, kMotors, qvel);
  }

  MujocoOutcome Judge(const MujocoView& view, const std::array<double, 3>&, const float* action,
                      double* terms) const override {
    const std::array<double, 3> offset = Offset(view);
    terms[0] = -std::sqrt(SumOfSquares(offset.data(), 3)) * distance_weight_;
    terms[1] = -SumOfSquares(action, kMotors) * control_weight_;
    return {.reward = terms[0] + terms[1]};
  }

  void Observe(const MujocoView& view, float* obs) const override {
    for (int i = 0; i < kMotors; ++i) *obs++ = static_cast<float>(std::cos(view.qpos[i]));
    for (int i = 0; i < kMotors; ++i) *obs++ = static_cast<float>(std::sin(view.qpos[i]));
    obs = Write(view.qpos + kMotors, kDof - kMotors, obs);
    obs = Write(view.qvel, kMotors, obs);
    Write(Offset(view).data(), 2, obs);
  }

 private:
  // Fingertip minus target, m.
  static std::array<double, 3> Offset(const MujocoView& view) {
    const double *const finger = view.xpos + 3 * view.named[0], *const target = view.xpos + 3 * view.named[1];
    return {finger[0] - target[0], finger[1] - target[1], finger[2] - target[2]};
  }

  const double distance_weight_, control_weight_;
};

}  // namespace

std::unique_ptr<const MujocoTask> MakeReacher(MujocoArguments& arguments) {
  return std::make_unique<Reacher>(arguments);
}

}  // namespace skein
