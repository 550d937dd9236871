// SPDX-License-Identifier: Apache-2.0
// Mode on_device: environments, inference and update all on the learner's device.
#include <utility>

#include "absl/status/status.h"
#include "base/process/clock.h"
#include "learner/run/training_run.h"

namespace skein {

absl::Status TrainingRun::BeginOnDevice() {
  CountOnDevice(0, 0);
  return trainer_->BeginOnDevice(share_.first_env, share_.num_envs, own_env_state_);
}

void TrainingRun::CountOnDevice(uint64_t collected, uint64_t trained) {
  v1::StepAccount account;
  {
    absl::MutexLock lock(&mu_);
    device_account_.set_collected(device_account_.collected() + collected);
    device_account_.set_trained(device_account_.trained() + trained);
    device_account_.set_pending(device_account_.pending() + collected - trained);
    account = device_account_;
  }
  metrics_->SetAccount(account, 0);
}

absl::Status TrainingRun::TrainOnDeviceUntilDone() {
  const auto columns = static_cast<int64_t>(share_.num_envs * agents_);
  while (record_.env_steps < config_.total_steps()) {
    if (!expulsion_->status().ok()) return absl::OkStatus();
    // Before anything is collected: where environments are then is where the last iteration ended.
    if (group_ == nullptr) {
      if (shutdown_->signalled()) return absl::OkStatus();
      decision_ = {};
      decision_.total_columns = columns;
    } else {
      const absl::Duration begin = MonotonicNow();
      const auto decision = AgreeWithRanks(columns);
      if (!decision.ok()) return decision.status();
      metrics_->AddStage(LearnerMetrics::Stage::kBarrier, MonotonicNow() - begin);
      decision_ = *decision;
      if (decision_.kind != RankDecision::Kind::kTrain) return absl::OkStatus();
    }
    const auto collected = trainer_->CollectOnDevice(record_.iteration);
    if (!collected.ok()) return collected.status();
    CountOnDevice(static_cast<uint64_t>(collected->steps * collected->num_envs), 0);
    if (absl::Status s = TrainIteration(nullptr, *collected, record_.iteration + 1, std::nullopt); !s.ok()) return s;
    if (decision_.admits) return absl::OkStatus();
  }
  return absl::OkStatus();
}

}  // namespace skein
