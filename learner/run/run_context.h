// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "base/process/cancellation.h"
#include "base/process/shutdown.h"
#include "learner/report/metrics.h"
#include "learner/run/learner.h"
#include "member/coordinator_client.h"
#include "skein/v1/config.pb.h"

namespace skein {

// What a learner process is part of: the same for all parts of its training run, from its beginning to its end.
struct RunContext {
  const LearnerOptions& options;
  CoordinatorClient* const coordinator;
  LearnerMetrics* const metrics;
  ShutdownSignal* const shutdown;
  const Cancellation* const expulsion;  // Why the coordinator does not take this learner back.
  const v1::RunConfig config = coordinator->config();
  const std::string run_id = coordinator->membership().run_id;

  bool on_device() const { return config.sync().mode() == v1::SYNC_MODE_ON_DEVICE; }
  bool expelled() const { return !expulsion->status().ok(); }
  bool stopping() const { return shutdown->signalled() || expelled(); }
};

}  // namespace skein
