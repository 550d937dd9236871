// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "nlohmann/json_fwd.hpp"
#include "skein/v1/config.pb.h"

// Settings that a callback changes while a run trains (docs/callbacks.md). Pure functions.
//   {"ppo.lr": 1e-4} -> ReadChanges -> WithSettings (base/config/phases.h)
namespace skein {

// Every setting of `config` that has a value, by its name: {"ppo.lr": 3e-4, "sync.mode": "on_policy", ...}. Without
// lists of sections (phases, env.transforms).
nlohmann::json SettingsByName(const v1::RunConfig& config);

// Reads the JSON object `changes`, as a phase's `set`. InvalidArgument names the setting: unknown, out of range, of a
// wrong type, may not change, contradicts the rest of `config`, or is one that only phases change, because actors need
// to know it beforehand (env, directions). REQUIRES: `config` is valid.
absl::StatusOr<v1::RunConfig> ReadChanges(const v1::RunConfig& config, const std::string& changes);

// InvalidArgument: callbacks.python is not empty and names neither a function nor a program.
absl::Status CheckCallbacks(const v1::RunConfig& config);

}  // namespace skein
