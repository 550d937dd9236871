// SPDX-License-Identifier: Apache-2.0
#include "env/classic/mountain_car_continuous.h"

#include <algorithm>
#include <cmath>

namespace skein {
namespace {

constexpr float kMinPosition = -1.2f;
constexpr float kMaxPosition = 0.6f;
constexpr float kMaxSpeed = 0.07f;
constexpr double kGoalPosition = 0.45;
constexpr float kPower = 0.0015f;
constexpr double kSlope = 0.0025;  // Gravity's pull at the steepest point.

// Gymnasium keeps this environment's state in float32 from the first step on and so rounds every operation to
// float32: so do we.
class MountainCarContinuous final : public Env {
 public:
  const EnvSpec& spec() const override { return MountainCarContinuousSpec(); }

  void Reset(RandomStream& random) override {
    position_ = static_cast<float>(random.Uniform(-0.6, -0.4));
    velocity_ = 0;
  }

  bool Step(const float* action, float* reward) override {
    const float force = action[0];
    const float pull = static_cast<float>(kSlope * std::cos(double{3.0f * position_}));
    velocity_ = std::clamp(velocity_ + (force * kPower - pull), -kMaxSpeed, kMaxSpeed);
    position_ = std::clamp(position_ + velocity_, kMinPosition, kMaxPosition);
    if (position_ == kMinPosition && velocity_ < 0) velocity_ = 0;  // The left wall stops the car.

    const bool at_goal = position_ >= kGoalPosition && velocity_ >= 0;
    *reward = static_cast<float>((at_goal ? 100.0 : 0.0) - 0.1 * (double{force} * double{force}));
    return at_goal;
  }

  void Observe(float* obs) const override {
    obs[0] = position_;
    obs[1] = velocity_;
  }

  void SaveState(double* state) const override {
    state[0] = double{position_};
    state[1] = double{velocity_};
  }

  void LoadState(const double* state) override {
    position_ = static_cast<float>(state[0]);
    velocity_ = static_cast<float>(state[1]);
  }

 private:
  float position_ = 0;
  float velocity_ = 0;  // Per step.
};

}  // namespace

const EnvSpec& MountainCarContinuousSpec() {
  static const EnvSpec spec = {.id = "MountainCarContinuous-v0",
                               .obs_size = 2,
                               .action_size = 1,
                               .action_low = {-1},
                               .action_high = {1},
                               .state_size = 2,
                               .max_episode_steps = 999,
                               .reward_threshold = 90,
                               .velocity_columns = {1}};
  return spec;
}

std::unique_ptr<Env> MakeMountainCarContinuous() { return std::make_unique<MountainCarContinuous>(); }

}  // namespace skein
