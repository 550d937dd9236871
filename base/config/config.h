// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "skein/v1/config.pb.h"

// Strict reading of a RunConfig.   YAML file -> overrides -> defaults -> validated RunConfig
// Names, defaults and ranges come from the (setting) options in config.proto by reflection.
namespace skein {

// Sets every field of `config` that the YAML `text` names; other fields are unchanged.
// Error messages begin with `source`. Enums are read in lower case without their prefix.
// InvalidArgument: "source:line:column: ..." on bad YAML, an unknown key (names the nearest one), a
// duplicate key, a wrong type, a number that is not finite or out of range, a text over 1 MiB.
absl::Status MergeYaml(const std::string& text, const std::string& source, v1::RunConfig* config);

// Applies one "a.b.c=value" (value in YAML syntax). Errors as above, with source "--set a.b.c=value".
absl::Status ApplyOverride(const std::string& assignment, v1::RunConfig* config);

// Gives every unset field its default.
void ApplyDefaults(v1::RunConfig* config);

// Checks ranges again, and rules between fields (num_envs a multiple of envs_per_runner, ...).
// REQUIRES: defaults applied and num_envs resolved. InvalidArgument names the fields and numbers.
absl::Status ValidateRunConfig(const v1::RunConfig& config);

// `base` -> path (empty = none) -> overrides -> defaults. num_envs may still be 0 and the name empty. Errors as
// LoadRunConfig.
absl::StatusOr<v1::RunConfig> ReadRunConfig(const std::string& path, const std::vector<std::string>& overrides,
                                            const v1::RunConfig& base = {});

// ReadRunConfig -> num_envs (0 becomes env_groups x envs_per_runner) -> name
// (empty becomes <env>-s<seed>) -> validation. NotFound, InvalidArgument: as above, or the file cannot be read. An
// error of several settings is Located().
absl::StatusOr<v1::RunConfig> LoadRunConfig(const std::string& path, const std::vector<std::string>& overrides,
                                            uint32_t env_groups, const v1::RunConfig& base = {});

// `status`, which names settings, with the place of the first of them that one of `overrides` ("a.b=c") or the file at
// `path` sets: InvalidArgument "--set a.b=c: message" or "path:line:column: message". An empty path changes nothing.
absl::Status Located(const std::string& path, const std::vector<std::string>& overrides, const absl::Status& status);

// The whole configuration as YAML with each key once. MergeYaml reads it back to an equal message.
std::string ToYaml(const v1::RunConfig& config);

}  // namespace skein
