// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "skein/v1/status.pb.h"

namespace skein {

// The step accounts that the ranks of a group last reported, by place in the group, and the update under way. Used to
// settle the accounts of ranks that are lost. Not thread-safe.
class RankAccounts {
 public:
  // Begins a group of the processes with these ids (ElasticRanks::incarnation), by place.
  void SetGroup(std::vector<uint32_t> incarnations) { incarnations_ = std::move(incarnations); }
  const std::vector<uint32_t>& incarnations() const { return incarnations_; }

  // An update on `steps` env steps of each rank begins. Without a following EndUpdate it counts as broken off.
  void BeginUpdate(std::vector<uint64_t> steps);
  void EndUpdate() { in_update_ = false; }
  bool in_update() const { return in_update_; }
  // The update that broke off is in no rank's parameters.
  void DropUpdate() { in_flight_.clear(); }
  // Stores the accounts that the ranks reported, which include all updates so far.
  void Tell(std::vector<v1::StepAccount> accounts);

  // Adds to `lost` the settled accounts of the ranks that are gone: all of the group except `incarnation` (this rank)
  // and `there`. Returns the sum.
  v1::StepAccount Settle(uint32_t incarnation, const std::vector<uint32_t>& there, v1::StepAccount lost) const;

 private:
  std::vector<uint32_t> incarnations_;
  std::vector<v1::StepAccount> told_;
  bool in_update_ = false;           // An update is under way or broke off.
  std::vector<uint64_t> in_flight_;  // Env steps of the update since the last Tell, of each rank.
};

}  // namespace skein
