// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "base/config/resume_mode.h"
#include "base/process/shutdown.h"

// One learner process, which is one rank of a run: its options, and the function that runs it.
namespace skein {

struct LearnerOptions {
  std::string coordinator;              // host:port
  std::string run_directory;            // Checkpoints, metrics.jsonl and TensorBoard's events go here.
  std::string listen = "127.0.0.1:0";   // Data plane.
  std::string metrics = "127.0.0.1:0";  // /metrics
  std::string announce_host;            // Host under which others reach this one; empty = as the coordinator sees it.
  ResumeMode resume = ResumeMode::kAuto;
  absl::Duration timeout = absl::Seconds(30);  // To wait for the coordinator's answer.
  uint32_t rank = 0;                           // 0 <= rank < ranks. Rank 0 reports progress and writes checkpoints.
  uint32_t ranks = 1;                          // Learner processes of the run.
  uint32_t local_rank = 0;                     // Among the ranks on this machine: the number of its GPU.
  bool stay = false;                           // When the run has reached its target, wait for a signal before ending.
  uint64_t stop_at_step = 0;                   // End as if asked to once so many env steps are trained; 0 = no.
  std::string device;  // Overrides the configuration's learner.device for this rank; empty = no override.

  // InvalidArgument names the flag.
  absl::Status Validate() const;
};

// Runs one learner process until the run's target is reached or `shutdown` is signalled, then writes a last checkpoint.
//   collector (waits for the whole iteration) -> trainer -> publisher
absl::Status RunLearner(const LearnerOptions& options, ShutdownSignal* shutdown);

}  // namespace skein
