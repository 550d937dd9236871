// SPDX-License-Identifier: Apache-2.0
#include "env/synthetic/repeat_previous.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>

namespace skein {
namespace {

constexpr int kRewarded = 64;  // Steps of an episode that can be rewarded.

class RepeatPrevious final : public Env {
 public:
  explicit RepeatPrevious(const RepeatPreviousOptions& options)
      : delay_(options.delay), choices_(options.choices), spec_(MakeRepeatPreviousSpec(options)) {}

  const EnvSpec& spec() const override { return spec_; }

  void Reset(RandomStream& random) override {
    key_ = random.Uniform();
    step_ = 0;
  }

  bool Step(const float* action, float* reward) override {
    const bool right = step_ >= delay_ && std::lround(action[0]) == Symbol(step_ - delay_);
    *reward = right ? 1.0f : 0.0f;
    ++step_;
    return false;
  }

  void Observe(float* obs) const override {
    std::fill_n(obs, choices_, 0.0f);
    obs[Symbol(step_)] = 1;
  }

  void SaveState(double* state) const override {
    state[0] = key_;
    state[1] = step_;
  }

  void LoadState(const double* state) override {
    key_ = state[0];
    step_ = static_cast<int>(std::clamp(state[1], 0.0, 0x1p30));
  }

 private:
  // Shown in step `step` of this episode.
  int Symbol(int step) const {
    RandomStream stream(std::bit_cast<uint64_t>(key_), RandomPurpose::kEnvStep, 0, 0, static_cast<uint32_t>(step));
    return static_cast<int>(stream.Below(static_cast<uint32_t>(choices_)));
  }

  const int delay_, choices_;
  const EnvSpec spec_;
  double key_ = 0;  // In [0, 1); its bits are the key.
  int step_ = 0;    // Of the episode.
};

}  // namespace

EnvSpec MakeRepeatPreviousSpec(const RepeatPreviousOptions& options) {
  return {.id = "RepeatPrevious-v0",
          .obs_size = options.choices,
          .discrete = true,
          .action_size = options.choices,
          .state_size = 2,
          .max_episode_steps = kRewarded + options.delay,
          .reward_threshold = 60};
}

std::unique_ptr<Env> MakeRepeatPrevious(const RepeatPreviousOptions& options) {
  return std::make_unique<RepeatPrevious>(options);
}

}  // namespace skein
