// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "env/env.h"
#include "skein/v1/config.pb.h"
#include "trajectory/columns.h"

namespace skein {

// Measures the upper limit of an update: PPO in plain LibTorch with torch::nn layers, autograd and torch::optim::Adam.
// Networks, epochs, minibatches, loss and recomputation of advantages are those of the run; there are no observation
// statistics, no update stats and no checks for non-finite values.
// Not thread-safe: all calls from one thread, whose number of Torch threads is set as configured.
class BareUpdate {
 public:
  // Internal: Torch failed.
  static absl::StatusOr<std::unique_ptr<BareUpdate>> Make(const v1::RunConfig& config, const EnvSpec& spec);
  ~BareUpdate();

  // Trains on the batch once (all epochs). Internal: Torch failed.
  absl::Status Update(const Columns& batch);

 private:
  struct Impl;
  explicit BareUpdate(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace skein
