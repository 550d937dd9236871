// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>

#include "learner/run/elastic_ranks.h"
#include "learner/run/iteration_source.h"
#include "learner/run/run_accounts.h"
#include "learner/run/run_context.h"

namespace skein {

// Iterations in mode on_device: environments, inference and update all run on the learner's device, without actors.
class DeviceIterations final : public IterationSource {
 public:
  // All pointers and `context` must outlive this. `agents`: of an environment.
  DeviceIterations(const RunContext& context, uint64_t agents, ElasticRanks* ranks, RunAccounts* accounts)
      : context_(context), agents_(agents), ranks_(*ranks), accounts_(*accounts) {}

  absl::Status TakeShare(const EnvShare& share, const TicketState& state, Trainer* trainer) override;
  absl::StatusOr<Answer> Next(const RunRecord& record, Trainer* trainer) override;
  absl::Status Publish(uint64_t, const Trainer&) override { return absl::OkStatus(); }
  void Trained(uint64_t env_steps) override { accounts_.Count(0, env_steps); }
  absl::StatusOr<std::optional<TicketState>> State(const Trainer& trainer) const override;

 private:
  const RunContext& context_;
  const uint64_t agents_;
  ElasticRanks& ranks_;
  RunAccounts& accounts_;
  int64_t columns_ = 0;
};

}  // namespace skein
