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

// How many tickets an actor may hold at once, as it serves what it holds: all it asks for until it leaves one unserved.
// Then it waits, longer each time, and is tried with one; each that it serves in time is worth one more.
// Pure: `now` counts from any fixed moment. Not thread-safe.
class ActorStanding {
 public:
  // 0 while it waits.
  uint32_t Most(absl::Duration now) const { return now < waits_until_ ? 0 : most_; }
  // It answered one in time.
  void Serve();
  // It answered one that nobody waited for any more: it is there, and waits no longer this time.
  void ServeLate() { waits_until_ = -absl::InfiniteDuration(); }
  // It has not answered what it held for so long that nobody waits for it any more.
  void LeaveUnserved(absl::Duration now);
  bool good() const { return most_ == kAll; }

 private:
  static constexpr uint32_t kAll = 2048;  // More than anybody may ask for.
  uint32_t most_ = kAll;
  absl::Duration wait_ = absl::ZeroDuration();
  absl::Duration waits_until_ = -absl::InfiniteDuration();
};

// Standings of members that went away and may connect again, the newest so many; good ones need no remembering.
class AbsentStandings {
 public:
  static constexpr size_t kMost = 1'000;

  void Keep(const ConnectionId& actor, const ActorStanding& standing);
  // Of whatever connection of the member. Forgets it here.
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
