// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "coordinator/monotonic_time.h"

namespace skein {

// Which learner rank each actor feeds. An actor's worth is its number of runners, a rank's share the sum over its
// actors.
// - An actor without a rank gets the live one with the smallest share, the lowest among equals; of several such actors
//   those with most runners come first.
// - An actor is moved to the rank with the smallest share as long as it is worth less than the gap between the two, so
//   that the needier end comes out better; each time from the largest share that has such an actor, and the actor whose
//   worth is closest to half the gap. So in the end no rank is ahead of another by more than any one of its own actors,
//   nothing more happens without a change of members, few are moved, and none twice at one change.
// - A rank that starves gets an actor from one that has data and a larger share (ServeStarving).
// Deterministic and pure: the outcome depends on the sequence of calls only. Not thread-safe.
class Assignment {
 public:
  // A learner that has waited this long for data which actors owe it starves.
  static constexpr double kStarvingSeconds = 2;
  // One that has waited for less than this has data.
  static constexpr double kHasDataSeconds = 1;
  // Least time between two moves to starving ranks: long enough for the first one to show.
  static constexpr absl::Duration kMovePause = absl::Seconds(2);

  // An actor that was given another rank than it had.
  struct Move {
    std::string actor;
    uint32_t from = 0;
    uint32_t to = 0;
    bool starvation = false;  // Else for balance, or because `from` is gone.
  };

  // An actor that fed `rank` under a coordinator before this one. To be called before the first Update().
  void Restore(const std::string& actor, uint32_t runners, uint32_t rank);

  // Brings the assignment up to date with the ranks that are live now and with the runners of the live actors (0 counts
  // as 1). To be called at each change: a rank that goes and returns between two calls keeps its actors.
  std::vector<Move> Update(const std::set<uint32_t>& ranks, const std::map<std::string, uint32_t>& actors);

  // `waiting`: how long each rank has waited for data, in seconds, as it last reported; ranks that are not live are
  // ignored. Of those that starve, the one with the smallest share (then the longest wait, then the lowest rank) gets
  // an actor from the rank with the largest share among those that have data and a larger share; the actor that leaves
  // these two closest. Never such that the shares of all would differ by more than the largest actor, and not within
  // kMovePause of the last such move. If there are fewer actors than ranks, the ranks are thereby served in turn.
  std::optional<Move> ServeStarving(const std::map<uint32_t, double>& waiting, MonotonicTime now);

  // nullopt: there is no learner, or no such actor.
  std::optional<uint32_t> RankOf(const std::string& actor) const;

  // Runners by live rank.
  std::map<uint32_t, uint64_t> Shares() const;

 private:
  struct Actor {
    uint64_t runners = 1;
    std::optional<uint32_t> rank;  // Of a live learner.
    std::optional<uint32_t> told;  // The last one that a call ended with, live or not.
  };
  void Place();
  bool BalanceOnce();
  std::vector<Move> TakeMoves();  // Of all actors whose rank is not what was told. REQUIRES: every actor has a rank.
  // The actor of `from` that is worth less than `below` and comes closest to closing `gap` by changing sides.
  const std::string* BestActor(uint32_t from, uint64_t gap, uint64_t below) const;

  std::set<uint32_t> ranks_;
  std::map<std::string, Actor> actors_;
  std::optional<MonotonicTime> served_at_;  // The last move to a starving rank.
};

}  // namespace skein
