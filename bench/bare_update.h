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
// statistics, no update stats and no checks for non-finite values. With a memory: torch::nn::GRUCell or LSTMCell in a
// loop over steps, with zeros where episodes begin, and minibatches of whole sequences.
// Not thread-safe: all calls from one thread, whose number of Torch threads is set as configured.
class BareUpdate {
 public:
  // InvalidArgument: no ppo configuration; with a memory, burn-in or a sequence_length that does not divide an
  // iteration's steps. Internal: Torch failed.
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
