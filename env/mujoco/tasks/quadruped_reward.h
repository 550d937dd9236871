// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <cmath>

#include "env/mujoco/task.h"
#include "env/mujoco/tasks/quadruped_crouch.h"

// Reward and end of QuadrupedStand-v0; docs/environments.md has the formulas.
namespace skein::quadruped {

inline double Square(double x) { return x * x; }
inline double SquaredLength(const double* v) { return Square(v[0]) + Square(v[1]) + Square(v[2]); }
// 1 in the middle of the range, 0 at its ends and beyond them.
inline double Parabola(double x, const MujocoArguments::Range& range) {
  return std::max(0.0, 1 - Square((2 * x - range[0] - range[1]) / (range[1] - range[0])));
}
// The rising half of a parabola: 0 up to the lower end, 1 from the upper end on.
inline double Rise(double x, const MujocoArguments::Range& range) {
  return 1 - Square((range[1] - std::clamp(x, range[0], range[1])) / (range[1] - range[0]));
}

inline bool IsWithin(double x, const MujocoArguments::Range& range) { return range[0] <= x && x <= range[1]; }

// Of a streak: its steps without a break, and whether they were long enough to have stood.
inline constexpr int kSteps = 0, kStood = 1, kStreakColumns = 2;
// What is kept of an episode for the reward: the streak in the pose; that with tilt and knees within their whole bands;
// the last action.
enum RewardColumn {
  kStreak,
  kStreakInBands = kStreak + kStreakColumns,
  kLastAction = kStreakInBands + kStreakColumns,
  kRewardColumns = kLastAction + kMotors
};

// The settings of an environment, with the reward of a step.
class Reward {
 public:
  explicit Reward(MujocoArguments& arguments)
      : height_(arguments.Band("height_range", {0.42, 0.52})),
        upright_(arguments.Band("upright_range", {0.80, 0.98})),
        knee_(arguments.Band("knee_range", {0.5, 0.7})),
        speed_limit_(arguments.NotNegative("speed_limit", 0.5)),
        turn_limit_(arguments.NotNegative("turn_limit", 1)),
        stand_seconds_(arguments.NotNegative("stand_seconds", 4)),
        fall_height_(arguments.Number("fall_height", 0.22)),
        fall_upright_(arguments.Number("fall_upright", 0.2)),
        alive_(arguments.Number("healthy_reward", 0.6)),
        posture_weight_(arguments.Number("posture_weight", 2.5)),
        streak_weight_(arguments.Number("streak_weight", 1)),
        knee_weight_(arguments.Number("knee_weight", 2)),
        tilt_weight_(arguments.Number("tilt_cost_weight", 0.5)),
        turn_weight_(arguments.Number("turn_cost_weight", 0.05)),
        speed_weight_(arguments.Number("speed_cost_weight", 0.5)),
        change_weight_(arguments.Number("change_cost_weight", 0.1)),
        control_weight_(arguments.Number("ctrl_cost_weight", 0.05)) {}

  static std::vector<std::string> Terms() {
    return {"reward_alive", "reward_posture", "reward_streak", "reward_knee", "reward_tilt",   "reward_turn",
            "reward_speed", "reward_change",  "reward_ctrl",   "stood",       "stood_in_bands"};
  }

  // As MujocoTask::Judge; terms: of Terms(); columns: RewardColumn.
  MujocoOutcome Judge(const double* qpos, const double* qvel, const float* action, double step_seconds, double* columns,
                      double* terms) const {
    const double height = qpos[2], upright = 1 - 2 * (Square(qpos[4]) + Square(qpos[5]));
    const double speed = SquaredLength(qvel), turn = SquaredLength(qvel + 3);  // Squares.
    const bool fallen = height < fall_height_ || upright < fall_upright_;
    const bool standing = IsWithin(height, height_) && upright >= upright_[0] && speed <= Square(speed_limit_) &&
                          turn <= Square(turn_limit_);
    bool in_bands = standing && upright <= upright_[1];
    double knees = 0, change = 0;
    for (int leg = 0; leg < 4; ++leg) {
      const double bend = qpos[kJoints + 2 * leg + 1] / kKneeEnd;
      knees += Parabola(bend, knee_);
      in_bands = in_bands && IsWithin(bend, knee_);
    }
    for (int i = 0; i < kMotors; ++i) change += Square(action[i] - columns[kLastAction + i]);
    std::copy_n(action, kMotors, columns + kLastAction);

    terms[0] = fallen ? 0 : alive_;
    terms[1] = posture_weight_ * (Parabola(height, height_) + Rise(upright, upright_)) / 2;
    terms[9] = Stand(standing, step_seconds, columns + kStreak);
    terms[10] = Stand(in_bands, step_seconds, columns + kStreakInBands);
    terms[2] = streak_weight_ * std::min(1.0, columns[kStreak + kSteps] * step_seconds);  // Grows for a second.
    terms[3] = knee_weight_ * knees / 4;
    terms[4] = -tilt_weight_ * (1 - upright);
    terms[5] = -turn_weight_ * turn;
    terms[6] = -speed_weight_ * speed;
    terms[7] = -change_weight_ * change / kMotors;
    terms[8] = -control_weight_ * SumOfSquares(action, kMotors) / kMotors;
    MujocoOutcome outcome = {.terminated = fallen};
    for (int i = 0; i < 9; ++i) outcome.reward += terms[i];
    return outcome;
  }

 private:
  // The change of whether it has stood; the sum of these is what it is now. `streak`: kSteps, kStood.
  double Stand(bool holds, double step_seconds, double* streak) const {
    streak[kSteps] = holds ? streak[kSteps] + 1 : 0;
    const double stood = streak[kSteps] * step_seconds >= stand_seconds_ - 1e-9 ? 1 : 0, before = streak[kStood];
    streak[kStood] = stood;
    return stood - before;
  }

  const MujocoArguments::Range height_, upright_, knee_;   // m, cosine of the tilt, share of a knee's range
  const double speed_limit_, turn_limit_, stand_seconds_;  // m/s, rad/s, s
  const double fall_height_, fall_upright_;
  const double alive_, posture_weight_, streak_weight_, knee_weight_;
  const double tilt_weight_, turn_weight_, speed_weight_, change_weight_, control_weight_;
};

}  // namespace skein::quadruped
