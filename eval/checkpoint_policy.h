// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "env/env.h"
#include "env/transform/transform.h"
#include "policy/normalization.h"
#include "policy/policy.h"
#include "skein/v1/config.pb.h"

namespace skein {

// The policy of a checkpoint, ready to act, with its configuration and environment spec.
struct CheckpointPolicy {
  std::string path;      // Of the checkpoint's folder.
  v1::RunConfig config;  // Resolved.
  EnvSpec spec;
  std::vector<Transform> transforms;  // Between the environment and the policy; spec is with them.
  std::shared_ptr<const Policy> policy;
  // What `policy` was made of: values of PolicyParameters in their order, and its normaliser.
  std::vector<std::vector<float>> parameters;
  Normalization normalization;
  std::string digest;  // CheckpointDigest.
  uint64_t env_steps = 0;
  std::vector<std::string> warnings;  // Newer checkpoints that were damaged.
};

// Loads the policy at `path`: a checkpoint's folder, or a run's folder or its checkpoints folder, for the newest one
// there. NotFound: no checkpoint there. DataLoss: it is damaged, its tensors do not fit its configuration, or its model
// (env.mujoco.xml_file) has changed, unless `any_model`. InvalidArgument: its environment is not registered, or refuses
// its settings.
absl::StatusOr<CheckpointPolicy> LoadCheckpointPolicy(const std::string& path, bool any_model = false);

}  // namespace skein
