// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "skein/v1/status.pb.h"

namespace skein {

// Contents of a checkpoint's manifest.
struct CheckpointInfo {
  std::string path;
  uint64_t env_steps = 0;
  std::string digest;       // Empty if the manifest has none.
  v1::StepAccount account;  // As of the checkpoint.
};

// Fields that the manifest lacks are 0 or empty.
CheckpointInfo ReadCheckpointInfo(const std::string& path);

// The complete checkpoint with the most steps in the run folder `run_path`. Reads its manifest only, so it may be
// damaged. nullopt: there is none.
std::optional<CheckpointInfo> FindNewestCheckpoint(const std::string& run_path);

// The same without damaged ones: reads all files of a checkpoint and verifies their checksums.
std::optional<CheckpointInfo> FindNewestIntactCheckpoint(const std::string& run_path);

// Whether there is a whole checkpoint where a user says: its folder, or a run's. Errors as FindCheckpoint
// (learner/run/checkpoint.h).
absl::Status CheckCheckpoint(const std::string& path);

}  // namespace skein
