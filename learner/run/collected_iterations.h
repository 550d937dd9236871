// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "learner/collect/collector.h"
#include "learner/collect/policy_publisher.h"
#include "learner/collect/service.h"
#include "learner/run/elastic_ranks.h"
#include "learner/run/iteration_source.h"
#include "learner/run/run_accounts.h"
#include "learner/run/run_context.h"
#include "learner/run/run_report.h"

namespace skein {

// Iterations collected by actors: opens them, waits for their data and publishes the policies for collecting them.
//   Serve -> { open -> tickets, fragments -> Next -> update -> Publish } ... -> Stop -> Finish
class CollectedIterations final : public IterationSource {
 public:
  // For a share of the run's environments, which continue from `state`. All pointers must outlive this. Errors as
  // MakeFragmentShape and CheckEnvState.
  static absl::StatusOr<std::unique_ptr<CollectedIterations>> Make(const RunContext& context, const EnvShare& share,
                                                                   const TicketState& state, ElasticRanks* ranks,
                                                                   RunAccounts* accounts, RunReport* report,
                                                                   LearnerService* service);

  // Starts to serve actors. REQUIRES: a policy is published.
  void Serve();
  // Ends waits for data, now and later.
  void Stop() { collector_->Stop(); }
  // Ends the remaining policy streams and closes all accounts. `over`: also tells the actors that the run is over.
  void Finish(bool over);

  // Errors as CheckEnvState.
  absl::Status TakeShare(const EnvShare& share, const TicketState& state, Trainer* trainer) override;
  absl::StatusOr<Answer> Next(const RunRecord& record, Trainer* trainer) override;
  absl::Status Publish(uint64_t iteration, const Trainer& trainer) override;
  void Trained(uint64_t env_steps) override;
  absl::StatusOr<std::optional<TicketState>> State(const Trainer&) const override { return std::nullopt; }

 private:
  CollectedIterations(const RunContext& context, const FragmentShape& shape, ElasticRanks* ranks, RunReport* report,
                      LearnerService* service);

  uint32_t AsyncFragments(const EnvShare& share) const;  // In this rank's part of an iteration, in mode async.
  void OpenIterations(const RunRecord& record);
  // Grants late tickets again; logs every few seconds what the learner waits for.
  void KeepWaiting(absl::Duration* told);
  absl::StatusOr<Answer> NextAlone();
  absl::StatusOr<Answer> NextWithRanks();
  Answer Take(RankDecision decision, Collector::Iteration collected) const;

  const RunContext& context_;
  const FragmentShape shape_;     // Of all fragments.
  const int64_t fragment_steps_;  // Env steps of a fragment, over all environments of its group.
  ElasticRanks& ranks_;
  RunReport& report_;
  LearnerService& service_;
  PolicyPublisher publisher_;
  std::unique_ptr<Collector> collector_;
  uint64_t published_ = 0;  // The newest policy version.
  uint64_t open_ = 0;       // Iterations opened and not trained on yet.
  absl::Duration arrived_;  // When data last arrived, or when waiting for data began.
  bool starves_ = false;    // The last iteration ended incomplete, and no data have arrived since.
};

}  // namespace skein
