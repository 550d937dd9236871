// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <utility>

#include "absl/time/time.h"
#include "learner/collect/connection_id.h"

namespace skein {

// Limits how many tickets an actor may hold at once. There is no limit until the actor leaves a ticket unserved. Then
// it gets none for a while, longer each time; after that it gets one, and one more for each that it serves in time.
// Pure: `now` counts from any fixed moment. Not thread-safe.
class ActorStanding {
 public:
  // The limit at `now`; 0 while the actor waits.
  uint32_t Most(absl::Duration now) const { return now < waits_until_ ? 0 : most_; }
  // The actor answered a ticket in time.
  void Serve();
  // The actor answered a ticket that was no longer waited for: it is alive, so its wait ends now.
  void ServeLate() { waits_until_ = -absl::InfiniteDuration(); }
  // The actor left a ticket unserved: its deadline (learner/collect/ticket_timing.h) has passed.
  void LeaveUnserved(absl::Duration now);
  bool good() const { return most_ == kAll; }

 private:
  static constexpr uint32_t kAll = 2048;  // No limit: the most credits that an actor may ask for.
  uint32_t most_ = kAll;
  absl::Duration wait_ = absl::ZeroDuration();
  absl::Duration waits_until_ = -absl::InfiniteDuration();
};

// Standings of members that disconnected and may connect again: the newest kMost. Good standings are not stored.
class AbsentStandings {
 public:
  static constexpr size_t kMost = 1'000;

  void Keep(const ConnectionId& actor, const ActorStanding& standing);
  // The standing stored from any connection of the member; removes it.
  ActorStanding Take(const ConnectionId& actor);

 private:
  using Member = std::pair<std::string, std::string>;  // Id and certificate.
  struct Kept {
    ActorStanding standing;
    uint64_t number = 0;  // Counts up.
  };
  std::map<Member, Kept> kept_;
  std::map<uint64_t, Member> order_;
  uint64_t next_ = 0;
};

}  // namespace skein
