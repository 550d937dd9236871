// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "env/env.h"
#include "skein/v1/config.pb.h"
#include "skein/v1/policy.pb.h"

namespace skein {

// Measures the upper limit of acting: the same network and normaliser in plain LibTorch, on one thread, without
// gradients. A memory is torch::nn::GRUCell or LSTMCell. Not thread-safe.
class TorchForward {
 public:
  // Internal: Torch failed.
  static absl::StatusOr<std::unique_ptr<TorchForward>> Make(const v1::RunConfig& config, const EnvSpec& spec);
  ~TorchForward();

  // The network in the form that actors receive.
  v1::PolicySnapshot Snapshot() const;
  // obs [rows, O] -> head [rows, head_size]. With a memory, the rows' states are kept from call to call; they begin
  // with zeros in the first call, and in each with another number of rows than the one before.
  void Act(const float* obs, int64_t rows, float* head);

 private:
  struct Impl;
  explicit TorchForward(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace skein
