// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "nlohmann/json.hpp"

// What processes recorded with SKEIN_HISTORY (base/telemetry/history_recorder.h), and the rules that hold for it
// whatever faults occurred.
namespace skein {

struct HistoryEvent {
  double seconds = 0;  // On the machine's monotonic clock.
  uint64_t pid = 0;    // Of the process that recorded it.
  std::string event;
  nlohmann::json fields;

  // 0, or empty: there is no such field, or it is of another type.
  uint64_t Number(const char* name) const;
  std::string Text(const char* name) const;
};

// Calls `see` with each event that processes recorded into `folder`, in order of time. A last line that was cut off, or
// is still being written, is left out. Holds the text of all files at once, but not all events.
// NotFound: there is no such folder, or no history in it. DataLoss: after all that can be read has been seen, the first
// line that is no event.
absl::Status ReadHistory(const std::string& folder, const std::function<void(const HistoryEvent&)>& see);

// What events break. They come in order of time.
//  - exactly once: each (actor, generation, sequence) is accepted at most once, by whichever learner process;
//  - no two live members with one rank, as each coordinator process knows them, and no generation used twice;
//  - barriers: of each name the generations that open rise, and all that pass one are told the same members;
//  - the policy version that an actor gets over one connection to a learner never falls, unless a learner started
//    meanwhile;
//  - steps: accounts balance, and a learner process trains on no more than it accepted.
// Not thread-safe.
class HistoryChecker {
 public:
  HistoryChecker();
  ~HistoryChecker();

  void See(const HistoryEvent& event);

  // One line for each; empty: all is well.
  const std::vector<std::string>& breaches() const { return breaches_; }
  uint64_t accepted_again() const { return accepted_again_; }  // Of the breaches, batches that had been accepted.
  // What there was to judge.
  const std::map<std::string, uint64_t>& events() const { return events_; }    // How many, by their names.
  const std::map<std::string, uint64_t>& batches() const { return batches_; }  // How many, by their results.
  size_t processes() const { return pids_.size(); }
  double seconds() const { return last_seconds_ - first_seconds_; }  // From the first event to the last.

 private:
  struct Rules;

  const std::unique_ptr<Rules> rules_;
  std::vector<std::string> breaches_;
  uint64_t accepted_again_ = 0;
  std::map<std::string, uint64_t> events_, batches_;
  std::set<uint64_t> pids_;
  double first_seconds_ = 0, last_seconds_ = 0;
};

}  // namespace skein
