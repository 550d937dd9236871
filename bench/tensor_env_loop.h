// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "skein/v1/config.pb.h"

namespace skein {

// Steps the tensor form of an environment, `envs` of them on learner.device, with precomputed random actions.
// Observations are made in each step, as in VectorEnv. The header does not include Torch. Not thread-safe: one thread,
// whose number of Torch threads it sets.
class TensorEnvLoop {
 public:
  struct Rates {
    double env_steps_per_second, agent_steps_per_second;  // The latter: agents whose alive flag is set.
  };

  // InvalidArgument: as MakeTensorEnv or ParseTrainingDevice.
  // FailedPrecondition: as ParseTrainingDevice. ResourceExhausted: memory does not suffice. Internal: Torch failed.
  static absl::StatusOr<std::unique_ptr<TensorEnvLoop>> Make(const v1::RunConfig& config, int64_t envs);
  ~TensorEnvLoop();

  const std::string& device() const;  // "cpu", "cuda:0"
  // Episodes continue from their current states. ResourceExhausted: memory does not suffice. Internal: Torch failed, or
  // too few next episodes were prepared.
  absl::StatusOr<Rates> Measure(absl::Duration duration);

 private:
  struct Impl;
  explicit TensorEnvLoop(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace skein
