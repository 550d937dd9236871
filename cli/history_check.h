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

// Checks the event histories that processes record with SKEIN_HISTORY (base/telemetry/history_recorder.h) against rules
// that hold whatever faults occur.   files -> ReadHistory -> HistoryEvent -> HistoryChecker -> breaches
namespace skein {

struct HistoryEvent {
  double seconds = 0;  // On the machine's monotonic clock.
  uint64_t pid = 0;    // Of the process that recorded it.
  std::string event;
  nlohmann::json fields;

  // 0, or empty, if the field is missing or of another type.
  uint64_t Number(const char* name) const;
  std::string Text(const char* name) const;
};

// Calls `see` with each event recorded into `folder`, in order of time. An incomplete last line, cut off or still being
// written, is left out. Keeps the text of all files in memory, but not all events. NotFound: there is no such folder,
// or it has no history. DataLoss: a line is not an event (names the first); all readable events have been passed to
// `see`.
absl::Status ReadHistory(const std::string& folder, const std::function<void(const HistoryEvent&)>& see);

// Finds the rules that events break. Events must come in order of time. The rules:
//  - exactly once: each (actor, generation, sequence) is accepted at most once, over all learner processes;
//  - in each coordinator process no two live members have one rank, and no generation is used twice;
//  - barriers: for each name the generations that open increase, and all members that pass one get the same members;
//  - over one connection to a learner, the policy version that an actor gets never decreases, unless a learner started
//    meanwhile;
//  - steps: accounts balance, and a learner process trains on no more than it accepted.
// Not thread-safe.
class HistoryChecker {
 public:
  HistoryChecker();
  ~HistoryChecker();

  void See(const HistoryEvent& event);

  // One line for each breach; empty if no rule is broken.
  const std::vector<std::string>& breaches() const { return breaches_; }
  uint64_t accepted_again() const { return accepted_again_; }  // Breaches by batches accepted a second time.
  // What was checked.
  const std::map<std::string, uint64_t>& events() const { return events_; }    // Counts by event name.
  const std::map<std::string, uint64_t>& batches() const { return batches_; }  // Counts by result.
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
