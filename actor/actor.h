// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "base/process/shutdown.h"

// One actor process: its options, and the function that runs it.
//   options -> RunActor: coordinator client, runners, Outbox, LearnerLink -> exit
namespace skein {

struct ActorOptions {
  std::string coordinator;              // host:port
  uint32_t runners = 1;                 // Runner threads; each steps rollout.envs_per_runner environments.
  std::string metrics = "127.0.0.1:0";  // Address of /metrics.
  std::string announce_host;  // Host at which Prometheus reaches this actor; empty = as the coordinator sees it.
  absl::Duration timeout = absl::Seconds(30);  // For the coordinator's answers.
  // The program's exit code after a drain: 0, or another one that tells a supervisor not to start it again.
  int drained_exit_code = 0;

  // InvalidArgument names the flag.
  absl::Status Validate() const;
};

// Runs one actor process until the run is over or `shutdown` is signalled. It then abandons unfinished fragments,
// delivers finished ones (within 3 s) and leaves. A drained actor first finishes the fragments that it has begun,
// delivers them (within 30 s) and then leaves; *drained says whether the actor was drained.
absl::Status RunActor(const ActorOptions& options, ShutdownSignal* shutdown, bool* drained);

}  // namespace skein
