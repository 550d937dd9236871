// SPDX-License-Identifier: Apache-2.0
#include "env/uav/uav_env.h"

#include <utility>

#include "env/uav/uav_world.h"

namespace skein {
namespace {

class UavEnv final : public Env {
 public:
  UavEnv(std::shared_ptr<UavWorld> world, int index) : world_(std::move(world)), index_(index) {}

  const EnvSpec& spec() const override { return world_->spec(); }
  void Reset(RandomStream& random) override { world_->Reset(index_, random); }
  bool Step(const float* action, float* reward) override { return world_->Step(index_, action, reward); }
  void Observe(float* obs) const override { world_->Observe(index_, obs); }
  void GlobalState(float* state) const override { world_->GlobalState(index_, state); }
  void Active(uint8_t* active) const override { world_->Active(index_, active); }
  void EpisodeMetrics(float* metrics) const override { world_->EpisodeMetrics(index_, metrics); }
  void SaveState(double* state) const override { world_->SaveState(index_, state); }
  void LoadState(const double* state) override { world_->LoadState(index_, state); }

 private:
  const std::shared_ptr<UavWorld> world_;  // Shared with the other environments of the block.
  const int index_;
};

}  // namespace

absl::StatusOr<std::vector<std::unique_ptr<Env>>> MakeUavEnvs(UavTask task, int count, const UavOptions& options) {
  if (absl::Status status = CheckUavOptions(options); !status.ok()) return status;
  const auto world = std::make_shared<UavWorld>(task, options, count);
  std::vector<std::unique_ptr<Env>> envs;
  for (int index = 0; index < count; ++index) envs.push_back(std::make_unique<UavEnv>(world, index));
  return envs;
}

}  // namespace skein
