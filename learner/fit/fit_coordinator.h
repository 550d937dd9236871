// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "base/process/subprocess.h"
#include "skein/v1/fit.pb.h"

namespace skein {

// The coordinator of a training, which `skein top`, the status page and Prometheus' discovery ask: skein-coordinator as
// a child of rank 0. What it calls env steps are sequences. Training does not depend on it.
struct FitCoordinator {
  std::unique_ptr<Subprocess> process;
  std::string address;  // host:port, for `skein top`.
  std::string page;     // URL.
};
// Starts it on the loopback; a port that is in use is replaced by a free one. `target`: sequences of the whole
// training. Unavailable: there is no such program, or it does not start.
absl::StatusOr<FitCoordinator> StartFitCoordinator(const v1::FitConfig& config, const std::string& run_directory,
                                                   uint64_t target, int port, int http_port);

}  // namespace skein
