// SPDX-License-Identifier: Apache-2.0
#include "env/mujoco/bare_loop.h"

#include <cmath>
#include <utility>

#include "env/env.h"
#include "env/mujoco/model.h"
#include "env/mujoco/mujoco_env.h"
#include "env/mujoco/task.h"

namespace skein {
namespace {

class ModelLoop final : public BareLoop {
 public:
  ModelLoop(std::shared_ptr<const MujocoTask> task, SharedModel model, const Options& options)
      : task_(std::move(task)), model_(std::move(model)), data_(mj_makeData(model_.get())), options_(options) {
    Reset();
  }

  void Run(const float* actions, int64_t rows, int64_t steps) override {
    const mjModel* const model = model_.get();
    mjData* const data = data_.get();
    for (int64_t i = 0; i < steps; ++i) {
      const float* const action = actions + row_ * model->nu;
      row_ = row_ + 1 < rows ? row_ + 1 : 0;
      for (int u = 0; u < model->nu; ++u) data->ctrl[u] = action[u];
      for (int k = 0; k < task_->facts().frame_skip; ++k) mj_step(model, data);
      if (++step_ == steps_) Reset();
    }
  }

  double time() const override { return data_->time; }

 private:
  void Reset() {
    const std::vector<int>& lengths = options_.episode_steps;
    if (!lengths.empty() && episode_ == lengths.size()) episode_ = 0;
    steps_ = lengths.empty() ? task_->spec().max_episode_steps : lengths[episode_];
    RandomStream random(options_.seed, RandomPurpose::kEnvReset, options_.env_index, episode_++);
    step_ = 0;
    mj_resetData(model_.get(), data_.get());
    task_->Start(random, data_->qpos, data_->qvel);
    mj_forward(model_.get(), data_.get());
  }

  const std::shared_ptr<const MujocoTask> task_;
  const SharedModel model_;
  const OwnedData data_;
  const Options options_;
  uint64_t episode_ = 0;
  int steps_ = 0, step_ = 0;  // Of this episode: in all, done.
  int64_t row_ = 0;
};

}  // namespace

absl::StatusOr<std::unique_ptr<BareLoop>> BareLoop::Make(const std::string& env_id, const Options& options) {
  absl::StatusOr<std::shared_ptr<const MujocoTask>> task = FindMujocoTask(env_id, options.mujoco);
  if (!task.ok()) return task.status();
  absl::StatusOr<SharedModel> model =
      ModelOf(**task, options.form == Form::kStepped ? ModelForm::kStepped : ModelForm::kPublished);
  if (!model.ok()) return model.status();
  return std::make_unique<ModelLoop>(*std::move(task), *std::move(model), options);
}

std::vector<int> EpisodeSteps(Env& env, uint64_t seed, uint64_t env_index, int limit, const float* actions,
                              int64_t rows) {
  std::vector<int> lengths;
  const int64_t width = env.spec().action_size;
  for (int64_t row = 0; row < rows;) {
    RandomStream random(seed, RandomPurpose::kEnvReset, env_index, lengths.size());
    env.Reset(random);
    int& steps = lengths.emplace_back(0);
    for (bool over = false; !over && row < rows; ++row) {
      float reward = 0;
      const bool terminated = env.Step(actions + row * width, &reward);
      ++steps;
      over = terminated || steps == limit || !std::isfinite(reward);
    }
  }
  return lengths;
}

}  // namespace skein
