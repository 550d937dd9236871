// SPDX-License-Identifier: Apache-2.0
#include "env/uav/uav_env.h"

#include "env/uav/uav_world.h"

namespace skein {
namespace {

class UavEnv final : public Env {
 public:
  UavEnv(UavTask task, const UavOptions& options) : world_(task, options, 1) {}

  const EnvSpec& spec() const override { return world_.spec(); }
  void Reset(RandomStream& random) override { world_.Reset(0, random); }
  bool Step(const float* action, float* reward) override { return world_.Step(0, action, reward); }
  void Observe(float* obs) const override { world_.Observe(0, obs); }
  void GlobalState(float* state) const override { world_.GlobalState(0, state); }
  void Active(uint8_t* active) const override { world_.Active(0, active); }
  void EpisodeMetrics(float* metrics) const override { world_.EpisodeMetrics(0, metrics); }
  void SaveState(double* state) const override { world_.SaveState(0, state); }
  void LoadState(const double* state) override { world_.LoadState(0, state); }

 private:
  UavWorld world_;  // Of one row: other threads may step other environments.
};

}  // namespace

absl::StatusOr<std::unique_ptr<Env>> MakeUavEnv(UavTask task, const UavOptions& options) {
  if (absl::Status status = CheckUavOptions(options); !status.ok()) return status;
  return std::make_unique<UavEnv>(task, options);
}

}  // namespace skein
