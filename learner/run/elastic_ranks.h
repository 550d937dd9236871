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

// This rank's groups with other ranks, which may join and leave, and the decisions that a group takes together.
//   Meet -> Form -> Enter -> Agree, once or more per iteration -> Dissolve -> Meet ...
// Only for the training thread, except reports(). With a single rank there is no group, and none of these is called.
class ElasticRanks {
 public:
  // `on_look` is called during Meet: with the missing ranks if too few are there, else with "". `context` must outlive
  // this.
  ElasticRanks(const RunContext& context, std::function<void(const std::string& missing)> on_look);

  bool single() const { return context_.options.ranks == 1; }
  // Waits for other ranks to form a group with. Aborted: the others continued without this rank.
  absl::StatusOr<RankFormation> Meet(uint64_t iteration, const std::vector<uint32_t>& incarnations);
  // Connects the group. Errors as RankGroup::Form.
  absl::Status Form(const RankFormation& formation);
  // The group has a common state: this rank no longer counts as new.
  void Enter(const RankFormation& formation) { group_number_ = formation.number; }
  // Destroys the group; the other ranks see its connections close.
  void Dissolve() { group_.reset(); }
  // This rank leads without the others, which do not return.
  void LeadAlone() { leads_ = true; }
  // Agrees with the group on what comes next. `columns`: of this rank's next iteration; nullopt: not ready, and `idle`
  // is how long no data have arrived. Errors as RankGroup::Meet.
  absl::StatusOr<RankDecision> Agree(std::optional<int64_t> columns, absl::Duration idle);

  // What the first rank of the group says, on every rank; `mine` on that one. With a single rank it is `mine`. Errors
  // as RankGroup::Gather.
  absl::StatusOr<v1::RankIteration> HearFirst(v1::RankIteration mine);

  RankGroup* group() const { return group_.get(); }  // Null: a single rank, or dissolved.
  int place() const { return group_ == nullptr ? 0 : group_->rank(); }
  int size() const { return group_ == nullptr ? 1 : group_->size(); }
  bool is_new() const { return group_number_ == 0; }     // This rank has entered no group yet.
  uint32_t incarnation() const { return incarnation_; }  // A random number that identifies this process.
  bool leads() const { return leads_; }                  // First of its group: writes checkpoints, reports progress.
  // Whether this rank reports the run's progress. Callable from any thread at any time.
  bool reports() const { return reports_; }

 private:
  // True if a rank is live that is not in the group.
  bool RankWantsToJoin();
  // Unavailable: a rank of the group has left the run.
  absl::Status CheckOthers();

  const RunContext& context_;
  const std::function<void(const std::string&)> on_look_;
  const uint32_t incarnation_;
  bool leads_;
  std::atomic<bool> reports_;
  uint64_t group_number_ = 0, attempted_ = 0;  // As in RankOffer.
  std::set<uint32_t> there_;
  std::unique_ptr<RankGroup> group_;
  RankRoll roll_;
  std::optional<RankRoll::Answer> formed_with_;  // The answer when the group was formed; nullopt: unknown.
  absl::Duration next_roll_;
  bool rank_wants_to_join_ = false;  // As of the last roll call.
};

}  // namespace skein
