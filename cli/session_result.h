// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>

#include "cli/checkpoint_info.h"

namespace skein {

// Run directory and newest checkpoint of a `skein train` or `skein head` that has ended.
struct SessionResult {
  std::string run_directory;                 // Empty if the session did not come so far.
  std::optional<CheckpointInfo> checkpoint;  // The newest one.
};

// One JSON object: run_directory, exit_code, checkpoint, digest, env_steps and evaluation (that of this checkpoint,
// from eval.json; else null). Without a checkpoint its three fields are null.
std::string ToJson(const SessionResult& result, int exit_code);

}  // namespace skein
