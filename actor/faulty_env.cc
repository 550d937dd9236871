// SPDX-License-Identifier: Apache-2.0
#include "actor/faulty_env.h"

#include <csignal>
#include <limits>
#include <stdexcept>
#include <utility>

#include "base/process/fault_hook.h"

namespace skein {
namespace {

// By the signal itself: a sanitizer's handler would end the process another way.
void Crash() {
  std::signal(SIGSEGV, SIG_DFL);
  std::raise(SIGSEGV);
}

class FaultyEnv final : public Env {
 public:
  explicit FaultyEnv(std::unique_ptr<Env> env) : env_(std::move(env)) {}
  const EnvSpec& spec() const override { return env_->spec(); }
  void SetEnvIndex(uint64_t env_index) override { env_->SetEnvIndex(env_index); }
  EnvBatch* batch() override { return env_->batch(); }
  void Reset(RandomStream& random) override {
    fault_ = FaultKind::kNone;
    env_->Reset(random);
  }
  bool Step(const float* action, float* reward) override {
    fault_ = NextFault(FaultPoint::kEnv);
    if (fault_ == FaultKind::kThrow) throw std::runtime_error("SKEIN_FAULTS says so");
    if (fault_ == FaultKind::kCrash) Crash();
    if (fault_ == FaultKind::kHang) HangForever();
    return env_->Step(action, reward);
  }
  bool truncated() const override { return env_->truncated(); }
  void Observe(float* obs) const override {
    env_->Observe(obs);
    if (fault_ == FaultKind::kNan) obs[0] = std::numeric_limits<float>::quiet_NaN();
    if (fault_ == FaultKind::kShape) obs[spec().num_agents * spec().obs_size] = 0;
  }
  void GlobalState(float* state) const override { env_->GlobalState(state); }
  void Active(uint8_t* active) const override { env_->Active(active); }
  void EpisodeMetrics(float* metrics) const override { env_->EpisodeMetrics(metrics); }
  void SaveState(double* state) const override { env_->SaveState(state); }
  void LoadState(const double* state) override { env_->LoadState(state); }

 private:
  const std::unique_ptr<Env> env_;
  FaultKind fault_ = FaultKind::kNone;  // Of the last step.
};

}  // namespace

std::unique_ptr<Env> MakeFaulty(std::unique_ptr<Env> env) {
  if (!FaultsInstalled()) return env;
  return std::make_unique<FaultyEnv>(std::move(env));
}

}  // namespace skein
