// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "google/protobuf/message.h"

// Strict reading of any message whose fields have (setting) options: RunConfig (config.h), FitConfig.
//   YAML file -> overrides -> defaults -> config_reflection::CheckSettings
// The rules are those of config.h, which has the same functions for RunConfig.
namespace skein {

inline constexpr uint64_t kMaxSettingsBytes = 1 << 20;  // Of a file.

// As MergeYaml, ApplyOverride, ApplyDefaults, Located and ToYaml.
absl::Status MergeSettings(const std::string& text, const std::string& source, google::protobuf::Message* message);
absl::Status OverrideSetting(const std::string& assignment, google::protobuf::Message* message);
void SetDefaultSettings(google::protobuf::Message* message);
absl::Status Locate(const std::string& path, const std::vector<std::string>& overrides, const absl::Status& status);
std::string SettingsYaml(const google::protobuf::Message& message);

}  // namespace skein
