// SPDX-License-Identifier: Apache-2.0
#include "eval/recorded_episode.h"

#include <utility>

namespace skein {
namespace {

class RecordingEnv : public Env {
 public:
  RecordingEnv(std::unique_ptr<Env> env, std::vector<std::vector<double>>* states)
      : env_(std::move(env)), states_(states) {}

  const EnvSpec& spec() const override { return env_->spec(); }
  void SetEnvIndex(uint64_t env_index) override { env_->SetEnvIndex(env_index); }
  void Reset(RandomStream& random) override {
    env_->Reset(random);
    if (++resets_ == 1) Note();
  }
  bool Step(const float* action, float* reward) override {
    const bool terminated = env_->Step(action, reward);
    if (resets_ == 1) Note();
    return terminated;
  }
  void Observe(float* obs) const override { env_->Observe(obs); }
  void GlobalState(float* state) const override { env_->GlobalState(state); }
  void Active(uint8_t* active) const override { env_->Active(active); }
  void EpisodeMetrics(float* metrics) const override { env_->EpisodeMetrics(metrics); }
  void SaveState(double* state) const override { env_->SaveState(state); }
  void LoadState(const double* state) override { env_->LoadState(state); }

 private:
  void Note() {
    states_->emplace_back(env_->spec().state_size);
    env_->SaveState(states_->back().data());
  }

  const std::unique_ptr<Env> env_;
  std::vector<std::vector<double>>* const states_;
  int64_t resets_ = 0;
};

}  // namespace

std::unique_ptr<Env> MakeRecordingEnv(std::unique_ptr<Env> env, std::vector<std::vector<double>>* states) {
  return std::make_unique<RecordingEnv>(std::move(env), states);
}

}  // namespace skein
