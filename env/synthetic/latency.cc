// SPDX-License-Identifier: Apache-2.0
#include "env/synthetic/latency.h"

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cmath>
#include <cstdlib>
#include <ctime>
#include <numbers>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace skein {
namespace {

constexpr double kPhaseOfStep = 0.1;  // rad
constexpr double kParetoIndex = 2.5;
constexpr double kMaxFactor = 10000;
// Wakes on crowded cores are often many milliseconds late.
constexpr absl::Duration kMostCaughtUp = absl::Seconds(1);
constexpr double kMaxSleepMs = 24 * 3600 * 1000.0;

absl::Duration Now() {
  timespec now = {};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return absl::DurationFromTimespec(now);
}

void SleepUntil(absl::Duration deadline) {
  const timespec until = absl::ToTimespec(deadline);
  while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, nullptr) == EINTR) {
  }
}

class Latency final : public Env {
 public:
  // REQUIRES: options.step_ms is of this machine.
  explicit Latency(const LatencyOptions& options) : options_(options), ledger_(kMostCaughtUp) {}

  const EnvSpec& spec() const override { return LatencySpec(); }

  void SetEnvIndex(uint64_t env_index) override { env_index_ = env_index; }

  void Reset(RandomStream& random) override {
    first_phase_ = random.Uniform(-std::numbers::pi, std::numbers::pi);
    steps_ = 0;
    key_ = random.Uniform();
  }

  bool Step(const float* action, float* reward) override {
    const double error = double{action[0]} - std::sin(Phase());
    *reward = static_cast<float>(-error * error);
    Sleep(LatencyOfStep(options_, env_index_, std::bit_cast<uint64_t>(key_), static_cast<uint32_t>(steps_)));
    ++steps_;
    return false;
  }

  void Observe(float* obs) const override {
    const double phase = Phase();
    obs[0] = static_cast<float>(std::sin(phase));
    obs[1] = static_cast<float>(std::cos(phase));
    obs[2] = static_cast<float>(std::sin(2 * phase));
    obs[3] = static_cast<float>(std::cos(2 * phase));
  }

  void SaveState(double* state) const override {
    state[0] = first_phase_;
    state[1] = steps_;
    state[2] = key_;
  }

  void LoadState(const double* state) override {
    first_phase_ = state[0];
    steps_ = std::clamp(state[1], 0.0, 0x1p31);
    key_ = state[2];
  }

 private:
  double Phase() const { return first_phase_ + kPhaseOfStep * steps_; }

  void Sleep(absl::Duration length) {
    if (length <= absl::ZeroDuration()) return;
    const absl::Duration now = Now();
    const absl::Duration deadline = ledger_.Deadline(now, length);
    if (deadline > now) SleepUntil(deadline);
    ledger_.Woke(deadline, Now());
  }

  const LatencyOptions options_;
  SleepLedger ledger_;
  uint64_t env_index_ = 0;
  double first_phase_ = 0;  // rad
  double steps_ = 0;        // Of the episode; a whole number.
  double key_ = 0;          // In [0, 1); its bits are the key.
};

}  // namespace

const EnvSpec& LatencySpec() {
  static const EnvSpec spec = {.id = "Latency-v0",
                               .obs_size = 4,
                               .action_size = 1,
                               .action_low = {-1},
                               .action_high = {1},
                               .state_size = 3,
                               .max_episode_steps = 200};
  return spec;
}

absl::StatusOr<std::unique_ptr<Env>> MakeLatency(const LatencyOptions& options) {
  const absl::StatusOr<double>& factor = LatencyFactor();
  if (!factor.ok()) return factor.status();
  LatencyOptions of_this_machine = options;
  of_this_machine.step_ms *= *factor;
  return std::make_unique<Latency>(of_this_machine);
}

const absl::StatusOr<double>& LatencyFactor() {
  static const absl::StatusOr<double> factor = [] {
    const char* const text = std::getenv("SKEIN_LATENCY_FACTOR");
    return text == nullptr || *text == '\0' ? absl::StatusOr<double>(1.0) : ParseLatencyFactor(text);
  }();
  return factor;
}

absl::StatusOr<double> ParseLatencyFactor(const char* text) {
  double factor = 0;
  // The comparisons are false for NaN.
  if (!absl::SimpleAtod(text, &factor) || !(factor >= 0 && factor <= kMaxFactor)) {
    return absl::InvalidArgumentError(absl::StrCat("SKEIN_LATENCY_FACTOR: got '", std::string(text).substr(0, 100),
                                                   "', want a number from 0 to ", kMaxFactor));
  }
  return factor;
}

absl::Duration LatencyOfStep(const LatencyOptions& options, uint64_t env_index, uint64_t key, uint32_t step) {
  double ms = options.step_ms;
  if (env_index < options.slow_envs) ms *= options.slow_factor;
  if (options.distribution != LatencyOptions::Distribution::kFixed) {
    const double u = 1.0 - RandomStream(key, RandomPurpose::kEnvStep, 0, 0, step).Uniform();  // In (0, 1].
    ms *= options.distribution == LatencyOptions::Distribution::kExponential
              ? -std::log(u)
              : (kParetoIndex - 1) / kParetoIndex * std::pow(u, -1 / kParetoIndex);
  }
  return absl::Milliseconds(std::min(ms, kMaxSleepMs));
}

absl::Duration SleepLedger::Deadline(absl::Duration now, absl::Duration length) {
  const absl::Duration caught_up = std::min(owed_, length);
  owed_ -= caught_up;
  return now + (length - caught_up);
}

void SleepLedger::Woke(absl::Duration deadline, absl::Duration now) {
  owed_ = std::min(most_, owed_ + std::max(absl::ZeroDuration(), now - deadline));
}

}  // namespace skein
