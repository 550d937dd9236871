// SPDX-License-Identifier: Apache-2.0
#include "env/mujoco/half_cheetah.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "env/mujoco/half_cheetah_model.h"

namespace skein {
namespace {

constexpr int kDof = 9;
constexpr int kMotors = 6;
constexpr int kFrameSkip = 5;  // mj_steps for each decision.
constexpr double kControlCost = 0.1;
constexpr double kResetNoise = 0.1;

class HalfCheetah final : public Env {
 public:
  explicit HalfCheetah(SharedModel model)
      : model_(std::move(model)), data_(mj_makeData(model_.get())), decision_time_(kFrameSkip * model_->opt.timestep) {}

  const EnvSpec& spec() const override { return HalfCheetahSpec(); }

  void Reset(RandomStream& random) override {
    mj_resetData(model_.get(), data_.get());
    for (int i = 0; i < kDof; ++i) data_->qpos[i] = model_->qpos0[i] + random.Uniform(-kResetNoise, kResetNoise);
    for (int i = 0; i < kDof; ++i) data_->qvel[i] = kResetNoise * random.Normal();
    // As Gymnasium does: the contact solver's first start comes from here.
    mj_forward(model_.get(), data_.get());
  }

  bool Step(const float* action, float* reward) override {
    double effort = 0;
    for (int i = 0; i < kMotors; ++i) {
      const double control = action[i];
      data_->ctrl[i] = control;
      effort += control * control;
    }
    // mj_step leaves what follows from positions (xpos, contacts) one step behind; only qpos and qvel are read here.
    const double x_before = data_->qpos[0];
    for (int i = 0; i < kFrameSkip; ++i) mj_step(model_.get(), data_.get());
    const double speed = (data_->qpos[0] - x_before) / decision_time_;
    *reward =
        CameApart(*data_) ? std::numeric_limits<float>::quiet_NaN() : static_cast<float>(speed - kControlCost * effort);
    return false;
  }

  void Observe(float* obs) const override {
    for (int i = 1; i < kDof; ++i) *obs++ = static_cast<float>(data_->qpos[i]);
    for (int i = 0; i < kDof; ++i) *obs++ = static_cast<float>(data_->qvel[i]);
  }

  void SaveState(double* state) const override {
    *state++ = data_->time;
    state = std::copy_n(data_->qpos, kDof, state);
    state = std::copy_n(data_->qvel, kDof, state);
    std::copy_n(data_->qacc_warmstart, kDof, state);
  }

  void LoadState(const double* state) override {
    mj_resetData(model_.get(), data_.get());
    data_->time = state[0];
    std::copy_n(state + 1, kDof, data_->qpos);
    std::copy_n(state + 1 + kDof, kDof, data_->qvel);
    std::copy_n(state + 1 + 2 * kDof, kDof, data_->qacc_warmstart);
  }

 private:
  const SharedModel model_;
  const OwnedData data_;
  const double decision_time_;  // s
};

}  // namespace

absl::StatusOr<std::unique_ptr<Env>> MakeHalfCheetah() {
  const absl::StatusOr<SharedModel>& model = HalfCheetahModel();
  if (!model.ok()) return model.status();
  return std::make_unique<HalfCheetah>(*model);
}

}  // namespace skein
