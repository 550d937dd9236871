// SPDX-License-Identifier: Apache-2.0
#include "learner/run/device_iterations.h"

#include <utility>

#include "base/config/direction_rules.h"
#include "base/config/phases.h"
#include "base/process/clock.h"

namespace skein {

absl::Status DeviceIterations::TakeShare(const EnvShare& share, const TicketState& state, Trainer* trainer) {
  columns_ = static_cast<int64_t>(share.share_envs * agents_);
  accounts_.SettleOwn();
  accounts_.Count(0, 0);
  return trainer->BeginOnDevice(share.first_env, share.share_envs, state);
}

absl::StatusOr<IterationSource::Answer> DeviceIterations::Next(const RunRecord& record, Trainer* trainer) {
  Answer answer;
  if (context_.expelled()) return answer;
  // Decided before anything is collected, so that the environments are still where the last iteration ended.
  if (ranks_.group() == nullptr) {
    if (context_.shutdown->signalled()) return answer;
    answer.decision.kind = RankDecision::Kind::kTrain;
    answer.decision.total_columns = columns_;
  } else {
    const absl::Duration begin = MonotonicNow();
    auto decision = ranks_.Agree(columns_, absl::ZeroDuration());
    if (!decision.ok()) return decision.status();
    context_.metrics->AddStage(LearnerMetrics::Stage::kBarrier, MonotonicNow() - begin);
    answer.decision = *std::move(decision);
    if (answer.decision.kind != RankDecision::Kind::kTrain) return answer;
  }
  const v1::RunConfig& config = context_.config;
  const double progress = static_cast<double>(record.env_steps) / static_cast<double>(config.total_steps());
  const v1::RunConfig of_phase = ConfigOfPhase(config, PhaseAt(config, record.env_steps));
  auto collected = trainer->CollectOnDevice(record.iteration, DirectionSettingsAt(of_phase.directions(), progress));
  if (!collected.ok()) return collected.status();
  accounts_.Count(collected->env_steps, 0);
  answer.iteration = Iteration{nullptr, *std::move(collected), record.iteration + 1, {}};
  return answer;
}

absl::StatusOr<std::optional<TicketState>> DeviceIterations::State(const Trainer& trainer) const {
  auto state = trainer.StateOnDevice();
  if (!state.ok()) return state.status();
  return std::optional<TicketState>(*std::move(state));
}

}  // namespace skein
