// SPDX-License-Identifier: Apache-2.0
#include "env/classic/cartpole.h"

#include <cmath>

#include "env/classic/cartpole_physics.h"

namespace skein {
namespace {

using namespace cartpole;  // NOLINT(google-build-using-namespace): its constants.

class CartPole final : public Env {
 public:
  const EnvSpec& spec() const override { return CartPoleSpec(); }

  void Reset(RandomStream& random) override {
    x_ = random.Uniform(-kResetRange, kResetRange);
    x_dot_ = random.Uniform(-kResetRange, kResetRange);
    theta_ = random.Uniform(-kResetRange, kResetRange);
    theta_dot_ = random.Uniform(-kResetRange, kResetRange);
  }

  bool Step(const float* action, float* reward) override {
    const double force = action[0] > 0.5f ? kForce : -kForce;
    const double cos_theta = std::cos(theta_);
    const double sin_theta = std::sin(theta_);
    const double pole_moment = kPoleMass * kHalfLength;
    const double push = (force + pole_moment * (theta_dot_ * theta_dot_) * sin_theta) / kTotalMass;
    const double theta_acc = (kGravity * sin_theta - cos_theta * push) /
                             (kHalfLength * (4.0 / 3.0 - kPoleMass * (cos_theta * cos_theta) / kTotalMass));
    const double x_acc = push - pole_moment * theta_acc * cos_theta / kTotalMass;

    // Explicit Euler: positions move with the velocities from before the step.
    x_ += kTimestep * x_dot_;
    x_dot_ += kTimestep * x_acc;
    theta_ += kTimestep * theta_dot_;
    theta_dot_ += kTimestep * theta_acc;

    *reward = 1.0f;
    return std::abs(x_) > kMaxX || std::abs(theta_) > kMaxTheta;
  }

  void Observe(float* obs) const override {
    obs[0] = static_cast<float>(x_);
    obs[1] = static_cast<float>(x_dot_);
    obs[2] = static_cast<float>(theta_);
    obs[3] = static_cast<float>(theta_dot_);
  }

  void SaveState(double* state) const override {
    state[0] = x_;
    state[1] = x_dot_;
    state[2] = theta_;
    state[3] = theta_dot_;
  }

  void LoadState(const double* state) override {
    x_ = state[0];
    x_dot_ = state[1];
    theta_ = state[2];
    theta_dot_ = state[3];
  }

 private:
  double x_ = 0, x_dot_ = 0;          // m, m/s
  double theta_ = 0, theta_dot_ = 0;  // rad from upright, rad/s
};

}  // namespace

const EnvSpec& CartPoleSpec() {
  static const EnvSpec spec = {.id = "CartPole-v1",
                               .obs_size = 4,
                               .discrete = true,
                               .action_size = 2,
                               .state_size = 4,
                               .max_episode_steps = 500,
                               .reward_threshold = 475,
                               .velocity_columns = {1, 3}};
  return spec;
}

std::unique_ptr<Env> MakeCartPole() { return std::make_unique<CartPole>(); }

}  // namespace skein
