// SPDX-License-Identifier: Apache-2.0
#include "env/mujoco/bare_loop.h"

#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "env/env.h"
#include "env/mujoco/half_cheetah.h"
#include "env/mujoco/half_cheetah_model.h"
#include "env/mujoco/model.h"

namespace skein {
namespace {

// What of an environment the limit has too.
struct BareEnv {
  const EnvSpec& (*spec)();
  const absl::StatusOr<SharedModel>& (*stepped)();
  const absl::StatusOr<SharedModel>& (*published)();
  int frame_skip;
  double position_noise;  // Starting positions: uniform within +- this.
  double velocity_noise;  // Starting velocities: normal with this deviation.
};

constexpr BareEnv kBareEnvs[] = {{HalfCheetahSpec, HalfCheetahModel, PublishedHalfCheetahModel, 5, 0.1, 0.1}};

class ModelLoop final : public BareLoop {
 public:
  ModelLoop(const BareEnv& env, SharedModel model, uint64_t seed, uint64_t env_index, int max_episode_steps,
            uint64_t episodes)
      : env_(env),
        model_(std::move(model)),
        data_(mj_makeData(model_.get())),
        seed_(seed),
        env_index_(env_index),
        max_episode_steps_(max_episode_steps > 0 ? max_episode_steps : env.spec().max_episode_steps),
        episodes_(episodes) {
    Reset();
  }

  void Run(const float* actions, int64_t rows, int64_t steps) override {
    const mjModel* const model = model_.get();
    mjData* const data = data_.get();
    for (int64_t i = 0; i < steps; ++i) {
      const float* const action = actions + row_ * model->nu;
      row_ = row_ + 1 < rows ? row_ + 1 : 0;
      for (int u = 0; u < model->nu; ++u) data->ctrl[u] = action[u];
      for (int k = 0; k < env_.frame_skip; ++k) mj_step(model, data);
      if (++step_ == max_episode_steps_) Reset();
    }
  }

  double time() const override { return data_->time; }

 private:
  void Reset() {
    RandomStream random(seed_, RandomPurpose::kEnvReset, env_index_, episode_++);
    if (episode_ == episodes_) episode_ = 0;
    step_ = 0;
    mj_resetData(model_.get(), data_.get());
    for (int i = 0; i < model_->nq; ++i) data_->qpos[i] += random.Uniform(-env_.position_noise, env_.position_noise);
    for (int i = 0; i < model_->nv; ++i) data_->qvel[i] = env_.velocity_noise * random.Normal();
    mj_forward(model_.get(), data_.get());
  }

  const BareEnv& env_;
  const SharedModel model_;
  const OwnedData data_;
  const uint64_t seed_, env_index_;
  const int max_episode_steps_;
  const uint64_t episodes_;  // Then the first again; 0 = never.
  uint64_t episode_ = 0;
  int step_ = 0;
  int64_t row_ = 0;
};

}  // namespace

absl::StatusOr<std::unique_ptr<BareLoop>> BareLoop::Make(const std::string& env_id, uint64_t seed, uint64_t env_index,
                                                         int max_episode_steps, uint64_t episodes, Form form) {
  for (const BareEnv& env : kBareEnvs) {
    if (env.spec().id != env_id) continue;
    const absl::StatusOr<SharedModel>& model = form == Form::kStepped ? env.stepped() : env.published();
    if (!model.ok()) return model.status();
    return std::make_unique<ModelLoop>(env, *model, seed, env_index, max_episode_steps, episodes);
  }
  return absl::NotFoundError(absl::StrCat(env_id, " is not a MuJoCo environment"));
}

}  // namespace skein
