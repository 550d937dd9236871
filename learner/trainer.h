// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "env/env.h"
#include "learner/batch_assembler.h"
#include "skein/v1/config.pb.h"
#include "skein/v1/policy.pb.h"
#include "skein/v1/status.pb.h"
#include "skein/v1/tensor.pb.h"

namespace skein {

// Everything about a run, besides what is learned, that a checkpoint holds.
struct RunRecord {
  uint64_t env_steps = 0;
  uint64_t iteration = 0;
  uint64_t episodes = 0;
  std::optional<v1::Tensor> env_state;  // float64 [N, S]; nullopt = no iteration is finished.
  v1::StepAccount account;
};

// The learning algorithm with Torch hidden behind it: StagedBatch in, PolicySnapshot out, checkpoints both ways.
// Not thread-safe; all calls from the thread that constructed it, whose Torch threads are set as configured.
// Torch's exceptions end here: they become Internal.
class Trainer {
 public:
  static absl::StatusOr<std::unique_ptr<Trainer>> Make(const v1::RunConfig& config, const EnvSpec& spec);
  ~Trainer();

  // One iteration (see Ppo::Update). `batch` is read in place.
  absl::StatusOr<std::map<std::string, double>> Update(StagedBatch* batch, double progress, uint64_t iteration);
  absl::StatusOr<std::shared_ptr<const v1::PolicySnapshot>> Snapshot(uint64_t version) const;

  struct Saved {
    std::string path;
    std::string digest;
  };
  // Errors as SaveCheckpoint.
  absl::StatusOr<Saved> Save(const std::string& folder, const RunRecord& record) const;

  struct Resumed {
    RunRecord record;
    Saved checkpoint;
    std::vector<std::string> warnings;
  };
  // Restores the newest complete checkpoint. NotFound: there is none. DataLoss: all are damaged.
  // FailedPrecondition: it is of another environment, network or number of environments.
  absl::StatusOr<Resumed> Resume(const std::string& folder);

 private:
  struct Impl;
  explicit Trainer(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace skein
