// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "learner/report/episode_window.h"
#include "skein/v1/tensor.pb.h"

// Checkpoints: runs/<name>/checkpoints/step_000000012345/{manifest.json, model.safetensors, optimizer.safetensors,
// state.safetensors, DONE} and the symlink checkpoints/latest.
// The files are written to a temporary folder and fsynced, DONE last; then the folder is renamed. The manifest has
// their checksums.
namespace skein {

// Checkpoint::env_id of a model of `skein fit`, which is no policy.
inline constexpr char kSequenceModelId[] = "skein-fit";

struct Checkpoint {
  uint64_t env_steps = 0;  // Trained so far.
  uint64_t iteration = 0;  // Finished ones.
  uint64_t episodes = 0;
  std::string env_id;
  std::string config_yaml;      // Resolved configuration, so that a checkpoint stands alone.
  std::string transforms_json;  // Of the environment (env/transform/transform_json.h); empty = none. Not read.
  std::vector<float> action_low, action_high;  // [D], of the environment without transforms; empty: choices. Not read.
  std::vector<v1::Tensor> model;               // Algorithm::ModelState
  std::vector<v1::Tensor> optimizer;           // Algorithm::OptimizerState
  std::vector<v1::Tensor> state;  // "env_state" [N, S], from which the environments continue; "policy_state"
                                  // [N, A, S] if the policy has a memory.
  // Not part of the digest:
  EpisodeWindow last_episodes;
  std::string changes_json;  // Settings that a callback has changed, {"ppo.lr": 1e-4}; empty = none.
  std::vector<std::pair<std::string, uint64_t>> counters;  // Step account and the like.
};

// 16 hex digits: XXH3-64 over steps, iteration and the three tensor files. Equal runs give equal digests.
std::string CheckpointDigest(const Checkpoint& checkpoint);

// Writes a new checkpoint under `folder` (".../checkpoints"), points `latest` to it, removes all but the newest `keep`.
// Returns its path. ResourceExhausted, PermissionDenied (`folder` is a link, or ...): what failed; older ones are
// intact.
absl::StatusOr<std::string> SaveCheckpoint(const std::string& folder, const Checkpoint& checkpoint, uint32_t keep);

// Reads one checkpoint folder and verifies every checksum. NotFound: no such checkpoint. DataLoss: names the file.
// FailedPrecondition: it is whole, and of another format.
absl::StatusOr<Checkpoint> LoadCheckpoint(const std::string& path);

struct FoundCheckpoint {
  std::string path;
  Checkpoint checkpoint;
  std::vector<std::string> warnings;  // Newer ones that were skipped, and why.
};
// If the newest checkpoint is damaged: kSkip uses the one before it, kRefuse is an error.
enum class Damage { kSkip, kRefuse };
// Loads the newest complete checkpoint under ".../checkpoints". Removes leftovers of interrupted writes. Symbolic links
// in a checkpoint count as damage: nothing outside the folder is read. NotFound: there is none (or no folder).
// DataLoss: all are damaged, or, with kRefuse, the newest is. FailedPrecondition: the newest that is whole is of
// another format. PermissionDenied: the folder is a symbolic link.
absl::StatusOr<FoundCheckpoint> LoadNewestCheckpoint(const std::string& folder, Damage damage = Damage::kSkip);
// Loads the checkpoint that a user means by `path`: its folder, or a run's folder or its checkpoints folder for the
// newest one there. Changes nothing: the run may be writing. Errors as LoadCheckpoint and LoadNewestCheckpoint.
absl::StatusOr<FoundCheckpoint> FindCheckpoint(const std::string& path);

}  // namespace skein
