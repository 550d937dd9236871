// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "nlohmann/json.hpp"

// What processes recorded with SKEIN_HISTORY (base/history_recorder.h), and what must hold of it whatever befell them.
namespace skein {

struct HistoryEvent {
  double seconds = 0;  // On the machine's monotonic clock.
  uint64_t pid = 0;    // Of the process that recorded it.
  std::string event;
  nlohmann::json fields;

  uint64_t Number(const char* name) const { return fields.value(name, uint64_t{0}); }
  std::string Text(const char* name) const { return fields.value(name, std::string()); }
};

// Of all processes that recorded into `folder`, in order of time. What is not a whole line of JSON is left out, except
// that a line which is neither cut off nor an event fails the running test.
std::vector<HistoryEvent> ReadHistory(const std::string& folder);

// One line for each breach; empty: all is well.
//  - exactly once: each (actor, generation, sequence) is accepted at most once, by whichever learner process;
//  - no two live members with one rank, as each coordinator process knows them, and no generation used twice;
//  - barriers: of each name the generations that open rise, and all who pass one are told the same members;
//  - the policy version that an actor gets over one connection to a learner never falls, unless a learner started
//    meanwhile;
//  - steps: accounts balance, and a learner process trains on no more than it accepted.
std::vector<std::string> Violations(const std::vector<HistoryEvent>& history);

// Fails the running test with the breaches, if there are any.
void ExpectInvariants(const std::vector<HistoryEvent>& history);

}  // namespace skein
