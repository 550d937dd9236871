// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <deque>
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

namespace skein {

// The name of a rank among `ranks` that run here, for people and its log: "learner" if it is the only one, else
// "learner-0" and so on.
std::string LearnerName(uint32_t rank, uint32_t ranks);

// The learner's ranks on this machine: one process each, told apart by RANK, WORLD_SIZE and LOCAL_RANK.
// Of several, one that is lost is started again, at most three times a minute: the others go on or wait for it. Those
// that have finished end together. Not thread-safe.
class LearnerGroup {
 public:
  struct Options {
    std::string program;  // Path of skein-learner.
    uint32_t ranks = 1;
    // The same for each; one that is started again gets "--resume auto", since the run has begun.
    std::vector<std::string> arguments;
    int torch_threads = 1;
  };
  struct Failure {
    int code = 0;
    std::string description;  // As Child::DescribeExit().
  };

  // Once. Not ok: some may run already. `directory` must outlive this. Errors as Child::Start() and
  // RunDirectory::NoteChild().
  absl::Status Start(const Options& options, const RunDirectory* directory);

  // Starts again, after a back-off, ranks that a signal has ended or that ended with code 75. Returns what people
  // should know of it. Errors as Start.
  absl::StatusOr<std::vector<std::string>> Mend(absl::Duration now);

  // Also if none was started. One that is to be started again has not ended.
  bool AllEnded() const;
  // Of a rank that has ended with an error and is not to be started again. A rank that only lost the others ends with
  // code 75, so any other code is more likely to be the cause; of several the lowest rank's. `stopped`: they have been
  // asked to end; then code 75 and SIGTERM are no failures.
  std::optional<Failure> FindFailure(bool stopped) const;

  // To those that still run. From then on none is started again.
  void Signal(int signal_number);
  // Whether all have ended in time.
  bool WaitForAll(absl::Duration timeout);
  void KillAll();

  uint64_t restarts() const { return restarts_; }

 private:
  struct Slot {
    std::unique_ptr<Child> child;  // Null while it waits for restart_at.
    absl::Duration restart_at;
    bool started_again = false;
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
