// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "skein/v1/status.pb.h"

namespace skein {

// Finds learner processes of this machine that hang: members of the run that fell silent. One hangs if
// - the coordinator expelled it,
// - its last heartbeat is a lease and two periods of heartbeats old, and
// - it has not used the processor for a lease: one that only got no turn joins again.
// A process that has not been a member yet does not count; it gives up by itself. Not thread-safe.
class SilentLearners {
 public:
  struct Options {
    absl::Duration heartbeat = absl::Seconds(1);
    absl::Duration lease = absl::Seconds(5);
    std::string host;  // This machine, as members call it.
  };
  // The processor time of a process so far, in any unit; it only has to rise.
  using ProcessorTime = std::function<uint64_t(pid_t)>;

  SilentLearners(Options options, ProcessorTime processor_time)
      : options_(std::move(options)), processor_time_(std::move(processor_time)) {}

  struct Hanging {
    pid_t pid = 0;
    absl::Duration silence;  // Since its last heartbeat.
  };
  // Looks at a status that the coordinator gave at the monotonic time `now`. `running`: the learners' processes.
  std::vector<Hanging> Look(const v1::StatusResponse& status, const std::vector<pid_t>& running, absl::Duration now);

 private:
  struct Seen {
    absl::Duration heard;  // Its last heartbeat.
    absl::Duration moved;  // When its processor time was last seen to rise.
    uint64_t processor_time = 0;
  };

  const Options options_;
  const ProcessorTime processor_time_;
  std::map<pid_t, Seen> seen_;  // Those that have been members.
};

// From /proc/PID/stat, in ticks; 0: there is no such process.
uint64_t ProcessorTicks(pid_t pid);

}  // namespace skein
