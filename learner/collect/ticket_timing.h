// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "absl/time/time.h"

// All deadlines of the ticket office, and the one function that computes them.
//
// b  the average time of the fastest connected actor for a ticket
// u  an actor's usual time: its own average (b while it has none) x the tickets that it holds for each of its runners
// Until one of the connected actors has answered a ticket, b and u are unknown.
//
//   age of a granted ticket           | what happens                                   | b is unknown
//   ----------------------------------|------------------------------------------------|------------------------------
//   2 u                               | late: an idle actor gets a copy (not in async) | 5 s: each idle actor gets one
//   10 u, from 5 s to max(60 s, 100 b)| taken back, counts as unserved                 | 60 s: taken back
//   void, max(10 s, 2 u), to 10 own   | its runner counts as free                      | 10 s
//   void, 10 own averages             | counts as unserved                             | never
//
//   An actor that left a ticket unserved gets none for 1 s, 2 s, 4 s ... 60 s, then one, and one more for each that it
//   answers in time. An actor slower than max(2 b, b + 20 ms) is passed over where the others would finish first; it
//   gets a copy as a trial when its average was last measured more than min(20 own averages, 10 s) ago.
//   An env group that cannot be moved waits 5 s for an actor with fewer such groups than runners. In an actor's average
//   the newest time counts 0.3. docs/architecture.md has all of these in one table.
namespace skein {

inline constexpr double kLate = 2;                                     // x u
inline constexpr absl::Duration kFirstCopy = absl::Seconds(5);         // While b is unknown.
inline constexpr absl::Duration kWorthwhile = absl::Milliseconds(20);  // Differences below this are not acted on.

inline constexpr double kUnserved = 10;  // x u
inline constexpr absl::Duration kLeastPatience = absl::Seconds(5);
inline constexpr absl::Duration kMostPatience = absl::Seconds(60);
inline constexpr double kMostTimesFastest = 100;  // x b, if that is more than kMostPatience.

inline constexpr absl::Duration kVoidInHand = absl::Seconds(10);  // After it an actor may have dropped a void ticket.

inline constexpr absl::Duration kFirstWait = absl::Seconds(1);
inline constexpr absl::Duration kLongestWait = absl::Seconds(60);

inline constexpr double kSlow = 2;  // x b
inline constexpr double kTryAgain = 20;
inline constexpr absl::Duration kLongestPause = absl::Seconds(10);

// How long env groups that cannot be moved wait for an actor that owns fewer of them than it has runners.
inline constexpr absl::Duration kUnowned = absl::Seconds(5);

inline constexpr double kNewestWeight = 0.3;  // Of the newest time in an actor's average.

// Ages of a granted ticket from which the rules of the table hold.
struct TicketDeadlines {
  absl::Duration late;
  absl::Duration taken_back;
  absl::Duration void_free;      // A void ticket no longer occupies a runner.
  absl::Duration void_unserved;  // A void ticket counts as unserved.
};

// `service`: the actor's average; `fastest`: b; zero = unknown. `per_runner`: tickets it holds for each runner, >= 1.
TicketDeadlines DeadlinesOf(absl::Duration service, absl::Duration fastest, double per_runner);

}  // namespace skein
