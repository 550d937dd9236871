// SPDX-License-Identifier: Apache-2.0
#include "env/classic/pendulum.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace skein {
namespace {

// A uniform rod, 1 m long, 1 kg.
constexpr double kGravity = 10.0;
constexpr double kMaxSpeed = 8.0;
constexpr float kMaxTorque = 2.0f;
constexpr double kTimestep = 0.05;

// The same angle in [-pi, pi).
double NormalizeAngle(double angle) {
  const double turn = 2 * std::numbers::pi;
  const double remainder = std::fmod(angle + std::numbers::pi, turn);
  return (remainder < 0 ? remainder + turn : remainder) - std::numbers::pi;
}

class Pendulum final : public Env {
 public:
  const EnvSpec& spec() const override { return PendulumSpec(); }

  void Reset(RandomStream& random) override {
    theta_ = random.Uniform(-std::numbers::pi, std::numbers::pi);
    theta_dot_ = random.Uniform(-1.0, 1.0);
  }

  bool Step(const float* action, float* reward) override {
    const float torque = action[0];
    const double angle = NormalizeAngle(theta_);
    *reward =
        static_cast<float>(-(angle * angle + 0.1 * (theta_dot_ * theta_dot_) + double{0.001f * (torque * torque)}));

    // The torque's part is float32, as in Gymnasium, whose actions are.
    const double acceleration = 1.5 * kGravity * std::sin(theta_) + double{3.0f * torque};
    theta_dot_ = std::clamp(theta_dot_ + acceleration * kTimestep, -kMaxSpeed, kMaxSpeed);
    theta_ += theta_dot_ * kTimestep;
    return false;
  }

  void Observe(float* obs) const override {
    obs[0] = static_cast<float>(std::cos(theta_));
    obs[1] = static_cast<float>(std::sin(theta_));
    obs[2] = static_cast<float>(theta_dot_);
  }

  void SaveState(double* state) const override {
    state[0] = theta_;
    state[1] = theta_dot_;
  }

  void LoadState(const double* state) override {
    theta_ = state[0];
    theta_dot_ = state[1];
  }

 private:
  double theta_ = 0;      // rad from upright, not wrapped
  double theta_dot_ = 0;  // rad/s
};

}  // namespace

const EnvSpec& PendulumSpec() {
  static const EnvSpec spec = {.id = "Pendulum-v1",
                               .obs_size = 3,
                               .action_size = 1,
                               .action_low = {-kMaxTorque},
                               .action_high = {kMaxTorque},
                               .state_size = 2,
                               .max_episode_steps = 200,
                               .velocity_columns = {2}};
  return spec;
}

std::unique_ptr<Env> MakePendulum() { return std::make_unique<Pendulum>(); }

}  // namespace skein
