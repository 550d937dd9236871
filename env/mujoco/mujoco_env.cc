// SPDX-License-Identifier: Apache-2.0
#include "env/mujoco/mujoco_env.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "env/mujoco/model.h"

namespace skein {
namespace {

class MujocoEnv final : public Env {
 public:
  MujocoEnv(const MujocoTask& task, SharedModel model)
      : task_(task),
        model_(std::move(model)),
        data_(mj_makeData(model_.get())),
        view_{data_->qpos, data_->qvel},
        decision_time_(task.facts().frame_skip * model_->opt.timestep),
        terms_(task.facts().reward_terms.size()),
        term_sums_(terms_.size()) {}

  const EnvSpec& spec() const override { return task_.spec(); }

  void Reset(RandomStream& random) override {
    std::fill(term_sums_.begin(), term_sums_.end(), 0.0);
    mj_resetData(model_.get(), data_.get());
    task_.Start(random, data_->qpos, data_->qvel);
    // As Gymnasium does: the contact solver's first start comes from here.
    mj_forward(model_.get(), data_.get());
  }

  bool Step(const float* action, float* reward) override {
    std::copy_n(action, model_->nu, data_->ctrl);
    // mj_step leaves what follows from positions (xpos, contacts) one step behind; tasks read only qpos and qvel.
    const std::array<double, 3> before = task_.Place(view_);
    for (int i = 0; i < task_.facts().frame_skip; ++i) mj_step(model_.get(), data_.get());
    if (HasDiverged(*data_)) {
      *reward = std::numeric_limits<float>::quiet_NaN();
      return false;
    }
    std::array<double, 3> velocity = task_.Place(view_);
    for (int i = 0; i < 3; ++i) velocity[i] = (velocity[i] - before[i]) / decision_time_;
    const MujocoOutcome outcome = task_.Judge(view_, velocity, action, terms_.data());
    for (size_t i = 0; i < terms_.size(); ++i) term_sums_[i] += terms_[i];
    *reward = static_cast<float>(outcome.reward);
    return outcome.terminated;
  }

  void Observe(float* obs) const override { task_.Observe(view_, obs); }

  void EpisodeMetrics(float* metrics) const override {
    for (const double sum : term_sums_) *metrics++ = static_cast<float>(sum);
  }

  void SaveState(double* state) const override {
    *state++ = data_->time;
    state = std::copy_n(data_->qpos, model_->nq, state);
    state = std::copy_n(data_->qvel, model_->nv, state);
    state = std::copy_n(data_->qacc_warmstart, model_->nv, state);
    std::copy(term_sums_.begin(), term_sums_.end(), state);
  }

  void LoadState(const double* state) override {
    mj_resetData(model_.get(), data_.get());
    data_->time = *state++;
    std::copy_n(state, model_->nq, data_->qpos);
    std::copy_n(state += model_->nq, model_->nv, data_->qvel);
    std::copy_n(state += model_->nv, model_->nv, data_->qacc_warmstart);
    std::copy_n(state += model_->nv, term_sums_.size(), term_sums_.begin());
  }

 private:
  const MujocoTask& task_;
  const SharedModel model_;
  const OwnedData data_;
  const MujocoView view_;
  const double decision_time_;  // s
  std::vector<double> terms_;   // Of the last step.
  std::vector<double> term_sums_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Env>> MakeMujocoEnv(const MujocoTask& task) {
  const absl::StatusOr<SharedModel> model = ModelOf(task, ModelForm::kStepped);
  if (!model.ok()) return model.status();
  return std::make_unique<MujocoEnv>(task, *model);
}

}  // namespace skein
