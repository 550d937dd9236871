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

// The environment of a learner process, shared by all parts of its training run and constant throughout it.
struct RunContext {
  const LearnerOptions& options;
  CoordinatorClient* const coordinator;
  LearnerMetrics* const metrics;
  ShutdownSignal* const shutdown;
  const Cancellation* const expulsion;  // Not OK once the coordinator refuses to readmit this learner, with the reason.
  const v1::RunConfig config = coordinator->config();
  const std::string run_id = coordinator->membership().run_id;

  bool on_device() const { return config.sync().mode() == v1::SYNC_MODE_ON_DEVICE; }
  bool expelled() const { return !expulsion->status().ok(); }
  bool stopping() const { return shutdown->signalled() || expelled(); }
};

}  // namespace skein
