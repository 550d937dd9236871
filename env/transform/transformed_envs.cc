// SPDX-License-Identifier: Apache-2.0
#include "env/transform/transformed_envs.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <stdexcept>
#include <string>
#include <utility>

#include "env/clip_action.h"
#include "env/written_row.h"

namespace skein {
namespace {

using Kind = TransformOptions::Kind;

// An environment with another spec. Transforms derive from it what they change.
class TransformedEnv : public Env {
 public:
  TransformedEnv(std::unique_ptr<Env> env, EnvSpec spec) : env_(std::move(env)), spec_(std::move(spec)) {}

  const EnvSpec& spec() const override { return spec_; }
  void SetEnvIndex(uint64_t env_index) override { env_->SetEnvIndex(env_index); }
  EnvBatch* batch() override { return env_->batch(); }
  bool truncated() const override { return env_->truncated(); }
  void Reset(RandomStream& random) override { env_->Reset(random); }
  bool Step(const float* action, float* reward) override { return env_->Step(action, reward); }
  void Observe(float* obs) const override { env_->Observe(obs); }
  void GlobalState(float* state) const override { env_->GlobalState(state); }
  void Active(uint8_t* active) const override { env_->Active(active); }
  void EpisodeMetrics(float* metrics) const override { env_->EpisodeMetrics(metrics); }
  void SaveState(double* state) const override { env_->SaveState(state); }
  void LoadState(const double* state) override { env_->LoadState(state); }

 protected:
  const std::unique_ptr<Env> env_;
  const EnvSpec spec_;
};

// What the environment inside observes. Throws if that has a wrong size, which VectorEnv can no longer see.
const float* ObserveInner(const Env& env, WrittenRow* row) {
  env.Observe(row->Prepare());
  if (const char* const wrong = row->WrongSize(); wrong != nullptr) {
    throw std::runtime_error(std::string("observed ") + wrong);
  }
  return row->data();
}

class HidingEnv final : public TransformedEnv {
 public:
  HidingEnv(std::unique_ptr<Env> env, const Transform& transform)
      : TransformedEnv(std::move(env), transform.outer),
        kept_(transform.kept),
        shown_(transform.shown),
        inner_state_size_(transform.inner.global_state_size),
        inner_size_(transform.inner.obs_size),
        inner_(static_cast<size_t>(transform.inner.num_agents) * inner_size_) {}

  void Observe(float* obs) const override { CopyColumns(kept_, obs); }
  void GlobalState(float* state) const override {
    if (inner_state_size_ > 0) env_->GlobalState(state);
    if (!shown_.empty()) CopyColumns(shown_, state + inner_state_size_);
  }

 private:
  void CopyColumns(const std::vector<int>& columns, float* to) const {
    const float* row = ObserveInner(*env_, &inner_);
    for (int agent = 0; agent < spec_.num_agents; ++agent, row += inner_size_) {
      for (const int column : columns) *to++ = row[column];
    }
  }

  const std::vector<int> kept_, shown_;
  const int inner_state_size_, inner_size_;
  mutable WrittenRow inner_;  // [A, O] of the environment, while it is observed.
};

// frames_ has the observations of the last steps, the oldest first: [k, A, O].
class StackingEnv final : public TransformedEnv {
 public:
  StackingEnv(std::unique_ptr<Env> env, const Transform& transform)
      : TransformedEnv(std::move(env), transform.outer),
        count_(transform.options.count),
        inner_size_(transform.inner.obs_size),
        inner_state_size_(transform.inner.state_size),
        row_(static_cast<size_t>(transform.inner.num_agents) * inner_size_),
        inner_(row_),
        frames_(row_ * count_) {}

  void Reset(RandomStream& random) override {
    env_->Reset(random);
    const float* const obs = ObserveInner(*env_, &inner_);
    for (int i = 0; i < count_; ++i) std::copy_n(obs, row_, frames_.begin() + i * row_);
  }
  bool Step(const float* action, float* reward) override {
    const bool terminated = env_->Step(action, reward);
    std::copy(frames_.begin() + row_, frames_.end(), frames_.begin());
    ReadNewest();
    return terminated;
  }
  void Observe(float* obs) const override {
    for (int agent = 0; agent < spec_.num_agents; ++agent) {
      for (int i = 0; i < count_; ++i) {
        obs = std::copy_n(frames_.begin() + i * row_ + static_cast<size_t>(agent) * inner_size_, inner_size_, obs);
      }
    }
  }
  // All but the newest, which the environment still has.
  void SaveState(double* state) const override {
    env_->SaveState(state);
    std::copy(frames_.begin(), frames_.end() - row_, state + inner_state_size_);
  }
  void LoadState(const double* state) override {
    env_->LoadState(state);
    constexpr double kMax = std::numeric_limits<float>::max();
    std::transform(state + inner_state_size_, state + spec_.state_size, frames_.begin(),
                   [kMax](double value) { return static_cast<float>(std::clamp(value, -kMax, kMax)); });
    ReadNewest();
  }

 private:
  void ReadNewest() { std::copy_n(ObserveInner(*env_, &inner_), row_, frames_.end() - row_); }

  const int count_, inner_size_, inner_state_size_;
  const std::ptrdiff_t row_;  // Floats of one observation of all agents.
  WrittenRow inner_;
  std::vector<float> frames_;
};

void Clip(const EnvSpec& inner, const float* action, float* changed) {
  for (int i = 0; i < inner.action_size; ++i) {
    changed[i] = ClipAction(action[i], inner.action_low[i], inner.action_high[i]);
  }
}

void Scale(const EnvSpec& inner, const float* action, float* changed) {
  for (int i = 0; i < inner.action_size; ++i) {
    const float low = inner.action_low[i], high = inner.action_high[i];
    changed[i] = low + (action[i] + 1.0f) * 0.5f * (high - low);
  }
}

// Of double, whose tanh differs between C libraries by less than a float's last bit.
void Squash(const EnvSpec& inner, const float* action, float* changed) {
  std::transform(action, action + inner.action_size, changed,
                 [](float value) { return static_cast<float>(std::tanh(double{value})); });
  Scale(inner, changed, changed);
}

// The batch of environments whose actions are changed; shared by them.
class ChangedActionBatch final : public EnvBatch {
 public:
  ChangedActionBatch(EnvBatch* batch, const EnvSpec& inner, size_t num_envs, ActionChange change)
      : batch_(batch), inner_(inner), change_(change), changed_(num_envs * inner.num_agents * inner.action_size) {}

  void Step(const float* action, const uint32_t* next_seed) override {
    for (size_t i = 0; i < changed_.size(); i += inner_.action_size) change_(inner_, action + i, changed_.data() + i);
    batch_->Step(changed_.data(), next_seed);
  }

 private:
  EnvBatch* const batch_;  // Owned by the environments.
  const EnvSpec inner_;
  const ActionChange change_;
  std::vector<float> changed_;  // [E, A, D]
};

class ChangedActionEnv final : public TransformedEnv {
 public:
  ChangedActionEnv(std::unique_ptr<Env> env, const Transform& transform, ActionChange change,
                   std::shared_ptr<EnvBatch> batch)
      : TransformedEnv(std::move(env), transform.outer),
        change_(change),
        batch_(std::move(batch)),
        changed_(static_cast<size_t>(transform.inner.num_agents) * transform.inner.action_size) {}

  EnvBatch* batch() override { return batch_.get(); }
  bool Step(const float* action, float* reward) override {
    const size_t size = spec_.action_size;
    for (size_t i = 0; i < changed_.size(); i += size) change_(env_->spec(), action + i, changed_.data() + i);
    return env_->Step(changed_.data(), reward);
  }

 private:
  const ActionChange change_;
  const std::shared_ptr<EnvBatch> batch_;  // Null if there is none.
  std::vector<float> changed_;             // [A, D]
};

// A reward that is not finite says that the simulation has diverged, and stays as it is.
class ChangedRewardEnv final : public TransformedEnv {
 public:
  ChangedRewardEnv(std::unique_ptr<Env> env, const Transform& transform)
      : TransformedEnv(std::move(env), transform.outer), options_(transform.options) {}

  bool Step(const float* action, float* reward) override {
    const bool terminated = env_->Step(action, reward);
    for (int agent = 0; agent < spec_.num_agents; ++agent) {
      if (std::isfinite(reward[agent])) reward[agent] = Change(reward[agent]);
    }
    return terminated;
  }

 private:
  float Change(float reward) const {
    const double changed = options_.kind == Kind::kRewardScale
                               ? options_.factor * double{reward}
                               : std::clamp(double{reward}, options_.low, options_.high);
    return static_cast<float>(changed);
  }

  const TransformOptions options_;
};

}  // namespace

ActionChange ActionChangeOf(Kind kind) {
  switch (kind) {
    case Kind::kClip:
      return Clip;
    case Kind::kScale:
      return Scale;
    case Kind::kSquash:
      return Squash;
    case Kind::kStack:
    case Kind::kHide:
    case Kind::kTimeLimit:
    case Kind::kRewardScale:
    case Kind::kRewardClip:
      return nullptr;
  }
  return nullptr;
}

void WrapInTransform(const Transform& transform, std::vector<std::unique_ptr<Env>>* envs) {
  const Kind kind = transform.options.kind;
  const ActionChange change = ActionChangeOf(kind);
  std::shared_ptr<EnvBatch> batch;
  if (EnvBatch* const inner = envs->front()->batch(); inner != nullptr && change != nullptr) {
    batch = std::make_shared<ChangedActionBatch>(inner, transform.inner, envs->size(), change);
  }
  for (std::unique_ptr<Env>& env : *envs) {
    switch (kind) {
      case Kind::kClip:
      case Kind::kScale:
      case Kind::kSquash:
        env = std::make_unique<ChangedActionEnv>(std::move(env), transform, change, batch);
        break;
      case Kind::kStack:
        env = std::make_unique<StackingEnv>(std::move(env), transform);
        break;
      case Kind::kHide:
        env = std::make_unique<HidingEnv>(std::move(env), transform);
        break;
      case Kind::kTimeLimit:
        env = std::make_unique<TransformedEnv>(std::move(env), transform.outer);
        break;
      case Kind::kRewardScale:
      case Kind::kRewardClip:
        env = std::make_unique<ChangedRewardEnv>(std::move(env), transform);
        break;
    }
  }
}

}  // namespace skein
