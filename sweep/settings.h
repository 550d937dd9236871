// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "skein/v1/config.pb.h"
#include "sweep/space.h"
#include "yaml-cpp/yaml.h"

// Settings of a configuration by their path.
namespace skein {

// Sets the setting `path` from YAML; messages begin with `source` (a file's name), line and column. InvalidArgument: no
// such setting (names the nearest; at `key`), a section, or a value that the setting refuses (at `node`).
absl::Status SetSetting(const YAML::Node& key, const std::string& path, const YAML::Node& node,
                        const std::string& source, v1::RunConfig* config);

// The value of a setting as text; empty if there is no such setting.
std::string SettingText(const v1::RunConfig& config, const std::string& path);

// `base` with the point's values in their place. A value that the setting refuses is an error.
absl::StatusOr<v1::RunConfig> ConfigAt(const Space& space, const Point& point, const v1::RunConfig& base);

// Whether all constraints hold for `base` with the point's values.
bool MeetsConstraints(const Space& space, const Point& point, const v1::RunConfig& base);

}  // namespace skein
