// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "base/net/backoff.h"
#include "base/process/restart_budget.h"
#include "cli/run_directory.h"
#include "launch/child.h"

// Starts and watches the learner ranks of this machine.
namespace skein {

// The display and log name of a rank if `ranks` run here: "learner" for a single one, else "learner-0" and so on.
std::string LearnerName(uint32_t rank, uint32_t ranks);

// Runs the learner ranks of this machine, one process each, with RANK, WORLD_SIZE and LOCAL_RANK set.
// If there are several, a lost rank is restarted, at most three times a minute; the others continue or wait for it. One
// that hangs is restarted also if it is the only one.
// Once one rank has finished, none is restarted. Not thread-safe.
class LearnerGroup {
 public:
  struct Options {
    std::string program;  // Path of skein-learner.
    uint32_t ranks = 1;
    // The same for each rank; a restarted one gets "--resume auto", since the run has begun.
    std::vector<std::string> arguments;
    int torch_threads = 1;
    ResourceShare share;                // Of each rank.
    ShareEnforcer* enforcer = nullptr;  // As Child::Options.
    // Called in Mend() with the process id of each rank that is lost, before it is restarted. May be empty.
    std::function<void(pid_t)> on_lost;
  };
  struct Failure {
    int code = 0;
    std::string description;  // From Child::DescribeExit().
  };

  // Starts all ranks. Call once. On an error some may be running. `directory` must outlive this object. Errors as
  // Child::Start() and RunDirectory::NoteChild().
  absl::Status Start(const Options& options, const RunDirectory* directory);

  // Restarts, after a back-off, ranks that were ended by a signal or exited with code 75; a single one only if
  // KillHung() ended it. Returns messages for the user. Errors as Start().
  absl::StatusOr<std::vector<std::string>> Mend(absl::Duration now);

  // Process ids of the ranks that run.
  std::vector<pid_t> Running() const;
  // Ends a rank that hangs, by its process id. Mend() restarts it.
  void KillHung(pid_t pid);

  // True also if none was started. A rank that waits for its restart has not ended.
  bool AllEnded() const;
  // The failure of a rank that ended with an error and will not be restarted. Ranks that only lost contact with the
  // others exit with code 75, so any other code is preferred as the cause; among equals the lowest rank. `stopped`: the
  // ranks were asked to end; then code 75 and SIGTERM are not failures.
  std::optional<Failure> FindFailure(bool stopped) const;

  // Sends a signal to the running ranks. After that none is restarted.
  void Signal(int signal_number);
  // Returns whether all ended in time.
  bool WaitForAll(absl::Duration timeout);
  void KillAll();

  uint64_t restarts() const { return restarts_; }
  // By what the ranks are held to their shares, for people; empty if they have none.
  std::string held_by() const;

 private:
  struct Slot {
    std::unique_ptr<Child> child;  // Null while it waits for restart_at.
    absl::Duration restart_at;
    bool started_again = false;
    bool hung = false;  // KillHung() ended this process.
    RestartBudget budget{3, absl::Minutes(1)};
    Backoff backoff{absl::Milliseconds(200), absl::Seconds(5)};
    std::optional<int> code() const { return child == nullptr ? std::nullopt : child->process().Poll(); }
  };
  absl::Status StartRank(uint32_t rank);
  bool SomeFinished() const;

  Options options_;
  const RunDirectory* directory_ = nullptr;
  std::deque<Slot> slots_;  // By rank.
  bool ending_ = false;
  std::optional<absl::Duration> finished_at_;  // Of the first rank that finished.
  uint64_t restarts_ = 0;
};

}  // namespace skein
