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

// Decides which learner rank each actor feeds. An actor's weight is its number of runners; a rank's share is the sum of
// the weights of its actors.
// - An actor without a rank goes to the live rank with the smallest share; ties go to the lowest rank. Of several such
//   actors, those with most runners are placed first.
// - Balancing: an actor moves to the rank with the smallest share while its weight is less than the gap between the two
//   shares. Each move takes an actor from the largest share that has such an actor, and of these the actor whose weight
//   is closest to half the gap. At the end no rank exceeds another by more than the weight of any one of its own
//   actors. Without a change of members nothing more moves; few actors move, and none moves twice at one change.
// - A starving rank gets an actor from a rank that has data and a larger share (ServeStarving).
// Deterministic and pure: the result depends only on the sequence of calls. Not thread-safe.
class Assignment {
 public:
  // A learner starves once it has waited this long for data that its actors owe it.
  static constexpr double kStarvingSeconds = 2;
  // A learner that has waited for less than this has data.
  static constexpr double kHasDataSeconds = 1;
  // Minimum time between two moves to starving ranks, so that the first one can take effect.
  static constexpr absl::Duration kMovePause = absl::Seconds(2);

  // An actor's move from one rank to another.
  struct Move {
    std::string actor;
    uint32_t from = 0;
    uint32_t to = 0;
    bool starvation = false;  // False: for balance, or because `from` has left.
  };

  // Restores an actor that fed `rank` under an earlier coordinator. Call before the first Update().
  void Restore(const std::string& actor, uint32_t runners, uint32_t rank);

  // Updates the assignment for the live ranks and the runners of the live actors (0 counts as 1). Call at each change.
  // A rank that leaves and returns between two calls keeps its actors.
  std::vector<Move> Update(const std::set<uint32_t>& ranks, const std::map<std::string, uint32_t>& actors);

  // `waiting`: how long each rank has waited for data, in seconds, as it last reported; ranks that are not live are
  // ignored. Among starving ranks the one with the smallest share (then the longest wait, then the lowest rank) gets an
  // actor. The actor comes from the rank with the largest share among those that have data and a larger share; it is
  // the one whose move leaves the two shares closest. No move is made if all shares would then differ by more than the
  // largest actor's weight, or within kMovePause of the last such move. With fewer actors than ranks, the ranks are
  // thereby served in turn.
  std::optional<Move> ServeStarving(const std::map<uint32_t, double>& waiting, MonotonicTime now);

  // nullopt: there is no learner, or no such actor.
  std::optional<uint32_t> RankOf(const std::string& actor) const;

  // Runners by live rank.
  std::map<uint32_t, uint64_t> Shares() const;

 private:
  struct Actor {
    uint64_t runners = 1;
    std::optional<uint32_t> rank;  // Of a live learner.
    std::optional<uint32_t> told;  // Its rank when the last call returned; live or not.
  };
  void Place();
  bool BalanceOnce();
  std::vector<Move> TakeMoves();  // Of all actors whose rank differs from `told`. REQUIRES: every actor has a rank.
  // The actor of `from` with a weight less than `below` whose move reduces `gap` the most.
  const std::string* BestActor(uint32_t from, uint64_t gap, uint64_t below) const;

  std::set<uint32_t> ranks_;
  std::map<std::string, Actor> actors_;
  std::optional<MonotonicTime> served_at_;  // The last move to a starving rank.
};

}  // namespace skein
