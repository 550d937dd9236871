// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "skein/v1/status.pb.h"

namespace skein {

// What the ranks of a group have told of their steps, by their place in it, so that those of ranks that are lost can be
// settled. Not thread-safe.
class RankBooks {
 public:
  // A group of processes that call themselves so.
  void SetGroup(std::vector<uint32_t> lives) { lives_ = std::move(lives); }
  const std::vector<uint32_t>& lives() const { return lives_; }

  // An update begins on so many steps of each rank. It has ended or, if EndUpdate is not called, broken off.
  void BeginUpdate(std::vector<uint64_t> steps);
  void EndUpdate() { in_update_ = false; }
  bool in_update() const { return in_update_; }
  // The steps of the update that broke off are in nobody's parameters.
  void DropUpdate() { in_flight_.clear(); }
  // The ranks' accounts, with all updates so far.
  void Tell(std::vector<v1::StepAccount> accounts);

  // The accounts of ranks that are gone, added to `lost`: those of the group except this one, `life`, and `there`.
  v1::StepAccount Settle(uint32_t life, const std::vector<uint32_t>& there, v1::StepAccount lost) const;

 private:
  std::vector<uint32_t> lives_;
  std::vector<v1::StepAccount> told_;
  bool in_update_ = false;           // One is under way or broke off.
  std::vector<uint64_t> in_flight_;  // The steps of the update that accounts were not told after.
};

}  // namespace skein
