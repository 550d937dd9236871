// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <thread>

#include "absl/status/statusor.h"
#include "absl/synchronization/notification.h"
#include "absl/time/time.h"
#include "serve/action_server.h"

namespace skein {

// The policy at `path`: a checkpoint's folder, or a run's for its newest. Errors as LoadCheckpointPolicy.
absl::StatusOr<std::shared_ptr<const ServedPolicy>> LoadServedPolicy(const std::string& path);

// Looks for newer checkpoints of a run and gives them to an ActionServer. A checkpoint that cannot be served is logged
// once; the one before stays. Reads only.   <run>/checkpoints/latest -> LoadServedPolicy -> ActionServer::Replace
class PolicySource {
 public:
  // Begins with a thread of its own, unless `path` is that of one checkpoint or `period` is zero. `server` and
  // `metrics` must outlive this.
  PolicySource(const std::string& path, absl::Duration period, ActionServer* server, ServeMetrics* metrics);
  ~PolicySource();

 private:
  void Watch(const std::string& link, absl::Duration period);
  void Look(const std::string& link);

  ActionServer* const server_;
  ServeMetrics* const metrics_;
  std::string seen_;  // What the link pointed to. Of the thread.
  absl::Notification stop_;
  std::thread thread_;
};

}  // namespace skein
