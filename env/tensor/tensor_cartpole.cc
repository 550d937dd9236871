// SPDX-License-Identifier: Apache-2.0
#include "env/tensor/tensor_cartpole.h"

#include <torch/types.h>
#include <torch/utils.h>

#include "base/number/number_bounds.h"
#include "env/classic/cartpole.h"
#include "env/classic/cartpole_physics.h"
#include "env/tensor/tensor_philox.h"

namespace skein {
namespace {

using namespace cartpole;  // NOLINT(google-build-using-namespace): its constants.

constexpr int kNumbers = 4;      // x, x', theta, theta'
constexpr int kBookkeeping = 3;  // Episode, step, return so far.

class TensorCartPole final : public TensorEnv {
 public:
  explicit TensorCartPole(const Options& options)
      : spec_(CartPoleSpec()),
        envs_(options.worlds),
        device_(options.device),
        philox_(options.seed, options.reset_purpose, options.device),
        all_(torch::arange(envs_, On(torch::kInt64))),
        env_index_(all_.remainder(envs_ / options.copies) + static_cast<int64_t>(options.first_env)) {
    if (options.max_episode_steps > 0) spec_.max_episode_steps = options.max_episode_steps;
  }
  using TensorEnv::CheckOptions;

  const EnvSpec& spec() const override { return spec_; }
  int64_t worlds() const override { return envs_; }
  int64_t state_size() const override { return kBookkeeping + kNumbers; }

  void BeginAll(int64_t episode) override {
    const torch::NoGradGuard no_grad;
    episode_ = torch::full({envs_}, episode - 1, On(torch::kInt64));  // As if the one before had ended.
    step_ = torch::zeros({envs_}, On(torch::kInt64));
    return_ = torch::zeros({envs_}, On(torch::kFloat64));
    state_ = torch::zeros({envs_, kNumbers}, On(torch::kFloat64));
    ended_ = torch::ones({envs_}, On(torch::kBool));
    BeginEpisodes();
  }

  StepResult Advance(const torch::Tensor& action) override {
    const torch::NoGradGuard no_grad;
    const torch::Tensor right = action.view({envs_}) > 0;
    const torch::Tensor force = torch::full({envs_}, -kForce, On(torch::kFloat64)).masked_fill_(right, kForce);
    const torch::Tensor x_dot = state_.select(1, 1), theta = state_.select(1, 2), theta_dot = state_.select(1, 3);
    const torch::Tensor cos_theta = theta.cos(), sin_theta = theta.sin();
    constexpr double kPoleMoment = kPoleMass * kHalfLength;
    const torch::Tensor push = (force + theta_dot * theta_dot * kPoleMoment * sin_theta) / Scalar(kTotalMass);
    const torch::Tensor inertia = (4.0 / 3.0 - cos_theta * cos_theta * kPoleMass / Scalar(kTotalMass)) * kHalfLength;
    const torch::Tensor theta_acc = (sin_theta * kGravity - cos_theta * push) / inertia;
    const torch::Tensor x_acc = push - theta_acc * kPoleMoment * cos_theta / Scalar(kTotalMass);
    // Explicit Euler: positions move with the velocities from before the step.
    state_ = state_ + torch::stack({x_dot, x_acc, theta_dot, theta_acc}, 1) * kTimestep;
    step_ = step_ + 1;
    return_ = return_ + 1;

    StepResult result;
    result.reward = torch::ones({envs_, 1}, On(torch::kFloat32));
    result.terminated = (state_.select(1, 0).abs() > kMaxX).logical_or_(state_.select(1, 2).abs() > kMaxTheta);
    result.truncated = (step_ >= spec_.max_episode_steps).logical_and_(result.terminated.logical_not());
    result.ended = ended_ = torch::logical_or(result.terminated, result.truncated);
    result.active = torch::ones({envs_, 1}, On(torch::kBool));
    result.agent_terminated = result.terminated.unsqueeze(1);
    result.episode_return = return_;
    result.episode_length = step_;
    result.episode_metrics = torch::zeros({envs_, 0}, On(torch::kFloat32));
    return result;
  }

  void BeginEpisodes() override {
    const torch::NoGradGuard no_grad;
    const torch::Tensor going_on = ended_.logical_not();
    episode_ = episode_ + ended_;
    step_ = step_ * going_on;
    return_ = return_ * going_on;
    // On the CPU only those that begin; elsewhere the host does not know how many that are.
    const torch::Tensor rows = device_.is_cpu() ? ended_.nonzero().view(-1) : all_;
    if (rows.size(0) == 0) return;
    // Four uniforms of 53 bits, of two words each.
    const torch::Tensor words = philox_.Words(env_index_.index_select(0, rows), episode_.index_select(0, rows), 0, 2);
    const torch::Tensor pairs = words.view({rows.size(0), kNumbers, 2});
    const torch::Tensor bits =
        pairs.select(2, 0).bitwise_left_shift(21).bitwise_or_(pairs.select(2, 1).bitwise_right_shift(11));
    const torch::Tensor begun = bits.to(torch::kFloat64) * 0x1p-53 * (kResetRange + kResetRange) - kResetRange;
    const torch::Tensor begins = ended_.index_select(0, rows).unsqueeze(1);
    state_ = state_.index_copy(0, rows, torch::where(begins, begun, state_.index_select(0, rows)));
    ended_ = torch::zeros_like(ended_);
  }

  torch::Tensor SaveState() const override {
    const torch::NoGradGuard no_grad;
    const auto column = [](const torch::Tensor& values) { return values.to(torch::kFloat64).unsqueeze(1); };
    return torch::cat({column(episode_), column(step_), column(return_), state_}, 1).cpu();
  }

  absl::Status LoadState(const torch::Tensor& saved) override {
    if (absl::Status status = CheckRows(saved); !status.ok()) return status;
    const torch::NoGradGuard no_grad;
    const torch::Tensor rows = saved.to(device_);
    episode_ = rows.select(1, 0).to(torch::kInt64);
    step_ = rows.select(1, 1).to(torch::kInt64);
    return_ = rows.select(1, 2).clone();
    state_ = rows.narrow(1, kBookkeeping, kNumbers).clamp(-double{kNumberBound}, kNumberBound);
    ended_ = torch::zeros({envs_}, On(torch::kBool));
    return absl::OkStatus();
  }

  std::vector<torch::Tensor*> Tensors() override { return {&episode_, &step_, &return_, &state_, &ended_}; }

  std::vector<int64_t> Steps() const override {
    const torch::Tensor steps = step_.cpu().contiguous();
    return {steps.data_ptr<int64_t>(), steps.data_ptr<int64_t>() + envs_};
  }

 private:
  torch::TensorOptions On(torch::ScalarType type) const { return torch::TensorOptions(type).device(device_); }
  // A divisor: GPUs multiply by the inverse of a number.
  torch::Tensor Scalar(double value) const { return torch::full({}, value, On(torch::kFloat64)); }

  void WriteObs(torch::Tensor obs, const torch::Tensor& envs) const override {
    const torch::Tensor shown = envs.defined() ? state_.index_select(0, envs) : state_;
    obs.view({shown.size(0), kNumbers}).copy_(shown);
  }
  void WriteState(torch::Tensor, const torch::Tensor&) const override {}

  EnvSpec spec_;
  const int64_t envs_;  // E
  const torch::Device device_;
  const TensorPhilox philox_;
  const torch::Tensor all_, env_index_;  // int64 [E], from 0 and run-wide
  torch::Tensor episode_, step_;         // int64 [E]
  torch::Tensor return_;                 // float64 [E], so far
  torch::Tensor state_;                  // float64 [E, 4]
  torch::Tensor ended_;                  // bool [E], by the last Advance.
};

}  // namespace

absl::StatusOr<std::unique_ptr<TensorEnv>> MakeTensorCartPole(const TensorEnv::Options& options, const EnvOptions&) {
  if (absl::Status status = TensorCartPole::CheckOptions(options); !status.ok()) return status;
  return std::make_unique<TensorCartPole>(options);
}

}  // namespace skein
