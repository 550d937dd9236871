// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "cli/child.h"
#include "cli/run_directory.h"

namespace skein {

// The name of a rank among `ranks` that run here, for people and its log: "learner" if it is the only one, else
// "learner-0" and so on.
std::string LearnerName(uint32_t rank, uint32_t ranks);

// The learner's ranks on this machine: one process each, told apart by RANK, WORLD_SIZE and LOCAL_RANK.
// They train in step, so they end together: by themselves, or because one has failed. Not thread-safe.
class LearnerGroup {
 public:
  struct Options {
    std::string program;  // Path of skein-learner.
    uint32_t ranks = 1;
    std::vector<std::string> arguments;  // The same for each.
    int torch_threads = 1;
  };
  struct Failure {
    int code = 0;
    std::string description;  // As Child::DescribeExit().
  };

  // Once. Not ok: some may run already. Errors as Child::Start() and RunDirectory::NoteChild().
  absl::Status Start(const Options& options, const RunDirectory& directory);

  // Also if none was started.
  bool AllEnded() const;
  // Of a rank that has ended with an error. A rank that only lost the others ends with code 75, so any other code is
  // more likely to be the cause; of several the lowest rank's. `stopped`: they have been asked to end; then code 75
  // and SIGTERM are no failures.
  std::optional<Failure> FindFailure(bool stopped) const;

  // To those that still run.
  void Signal(int signal_number);
  // Whether all have ended in time.
  bool WaitForAll(absl::Duration timeout);
  void KillAll();

 private:
  std::vector<std::unique_ptr<Child>> children_;  // By rank.
};

}  // namespace skein
