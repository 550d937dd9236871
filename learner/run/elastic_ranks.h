// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "learner/ranks/rank_forming.h"
#include "learner/ranks/rank_group.h"
#include "learner/ranks/rank_roll.h"
#include "learner/run/run_context.h"

namespace skein {

// The ranks that this one trains with, who come and go: one group after the other, and what they agree on.
//   Meet -> Form -> Enter -> Agree, iteration after iteration -> Dissolve -> Meet ...
// For the thread that trains, but for reports(). With a single rank there is no group and none of these is called.
class ElasticRanks {
 public:
  // `on_look` is called during Meet with what is missing where too few ranks are there, else with "". `context` must
  // outlive this.
  ElasticRanks(const RunContext& context, std::function<void(const std::string& missing)> on_look);

  bool single() const { return context_.options.ranks == 1; }
  // Waits for others to form a group with. Aborted: they went on without this rank.
  absl::StatusOr<RankFormation> Meet(uint64_t iteration, const std::vector<uint32_t>& lives);
  // Connects the group. Errors as RankGroup::Form.
  absl::Status Form(const RankFormation& formation);
  // The group has a common state: this rank is no newcomer any more.
  void Enter(const RankFormation& formation) { group_number_ = formation.number; }
  // The others see that this rank is not in a collective with them any more.
  void Dissolve() { group_.reset(); }
  // Without the others, who do not return.
  void LeadAlone() { leads_ = true; }
  // With what this rank has for the next iteration: columns, or nullopt and how long it has waited for data. Errors as
  // RankGroup::Meet.
  absl::StatusOr<RankDecision> Agree(std::optional<int64_t> columns, absl::Duration idle);

  RankGroup* group() const { return group_.get(); }  // Null: a single rank, or dissolved.
  int place() const { return group_ == nullptr ? 0 : group_->rank(); }
  int size() const { return group_ == nullptr ? 1 : group_->size(); }
  bool newcomer() const { return group_number_ == 0; }  // It has entered no group yet.
  uint32_t life() const { return life_; }               // Random, this process's.
  bool leads() const { return leads_; }                 // The first of its group: writes checkpoints, tells progress.
  // Whether this rank is the one that tells the run's progress. Callable from any thread at any time.
  bool reports() const { return reports_; }

 private:
  bool NewcomerIsThere();

  const RunContext& context_;
  const std::function<void(const std::string&)> on_look_;
  const uint32_t life_;
  bool leads_;
  std::atomic<bool> reports_;
  uint64_t group_number_ = 0, attempted_ = 0;  // As in RankOffer.
  std::set<uint32_t> there_;
  std::unique_ptr<RankGroup> group_;
  std::unique_ptr<RankRoll> roll_;
  absl::Duration next_roll_;
  bool newcomer_is_there_ = false;  // At the last roll.
};

}  // namespace skein
