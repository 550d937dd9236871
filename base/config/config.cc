// SPDX-License-Identifier: Apache-2.0
#include "base/config/config.h"

#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "base/config/algorithm_rules.h"
#include "base/config/config_reflection.h"
#include "base/config/direction_rules.h"
#include "base/config/message_settings.h"
#include "base/config/phases.h"
#include "base/config/resource_rules.h"
#include "base/config/setting_changes.h"
#include "base/config/transform_rules.h"
#include "base/process/file.h"
#include "base/process/message_text.h"

namespace skein {
namespace {

using config_reflection::CheckSettings;
using config_reflection::NumberText;

bool IsNameCharacter(char c) {
  return absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '.' || c == '_' || c == '-';
}

constexpr size_t kMaxNameBytes = 200;

// A folder of that name can be made under runs/ and nowhere else, and is no flag for a command that is given it.
bool IsFolderName(const std::string& name) {
  if (name.empty() || name[0] == '-' || name == "." || name == "..") return false;
  for (const char c : name) {
    if (!IsNameCharacter(c)) return false;
  }
  return true;
}

// num_envs and name, where they are left to us.
void Resolve(uint32_t env_groups, v1::RunConfig* config) {
  if (config->rollout().num_envs() == 0) {
    const uint64_t wanted = uint64_t{std::max(env_groups, 1u)} * config->rollout().envs_per_runner();
    // A product that is too large stays too large, for the range check to name.
    config->mutable_rollout()->set_num_envs(static_cast<uint32_t>(std::min<uint64_t>(wanted, UINT32_MAX)));
  }
  if (config->name().empty()) {
    std::string name = absl::StrCat(config->env().id(), "-s", config->seed());
    for (char& c : name) {
      if (!IsNameCharacter(c)) c = '-';
    }
    config->set_name(name);
  }
}

absl::Status CheckGradientParts(const v1::RunConfig& config) {
  const uint32_t parts = config.learner().gradient_parts();
  if (parts == 0) return absl::OkStatus();
  const std::string setting = absl::StrCat("learner.gradient_parts (", parts, ")");
  if (SearchesDirections(config)) {
    return absl::InvalidArgumentError(
        absl::StrCat(setting, " must be 0 with ", AlgorithmName(config), ", which has no gradient"));
  }
  if (config.sync().mode() != v1::SYNC_MODE_ON_POLICY && config.sync().mode() != v1::SYNC_MODE_OVERLAPPED) {
    return absl::InvalidArgumentError(absl::StrCat(setting, " needs sync.mode on_policy or overlapped"));
  }
  const v1::RolloutConfig& rollout = config.rollout();
  const uint32_t groups = rollout.num_envs() / rollout.envs_per_runner();
  if (groups % parts == 0) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      setting, " must divide the env groups, of which rollout.num_envs (", rollout.num_envs(),
      ") / rollout.envs_per_runner (", rollout.envs_per_runner(), ") makes ", groups, "; change one of the three"));
}

}  // namespace

absl::Status Located(const std::string& path, const std::vector<std::string>& overrides, const absl::Status& status) {
  return Locate(path, overrides, status);
}

absl::Status MergeYaml(const std::string& text, const std::string& source, v1::RunConfig* config) {
  return MergeSettings(text, source, config);
}

absl::Status ApplyOverride(const std::string& assignment, v1::RunConfig* config) {
  return OverrideSetting(assignment, config);
}

void ApplyDefaults(v1::RunConfig* config) { SetDefaultSettings(config); }

absl::Status ValidateRunConfig(const v1::RunConfig& config) {
  if (absl::Status status = CheckSettings(config, ""); !status.ok()) return status;
  if (absl::Status status = CheckDirections(config); !status.ok()) return status;
  if (absl::Status status = CheckResources(config); !status.ok()) return status;
  if (absl::Status status = CheckTransforms(config); !status.ok()) return status;
  const v1::RolloutConfig& rollout = config.rollout();
  if (config.name().size() > kMaxNameBytes) {
    return absl::InvalidArgumentError(absl::StrCat("name ", Quoted(config.name()), " cannot be a folder: it has ",
                                                   config.name().size(), " characters, at most ", kMaxNameBytes));
  }
  if (!IsFolderName(config.name())) {
    return absl::InvalidArgumentError(absl::StrCat("name ", Quoted(config.name()),
                                                   " cannot be a folder: use letters, digits, '.', '_' and '-', which "
                                                   "must not be first"));
  }
  if (rollout.num_envs() == 0) return absl::InvalidArgumentError("rollout.num_envs must be at least 1, got 0");
  if (rollout.num_envs() % rollout.envs_per_runner() != 0) {
    return absl::InvalidArgumentError(absl::StrCat("rollout.num_envs (", rollout.num_envs(),
                                                   ") must be a multiple of rollout.envs_per_runner (",
                                                   rollout.envs_per_runner(), ")"));
  }
  if (rollout.steps_per_iteration() % rollout.num_envs() != 0) {
    return absl::InvalidArgumentError(absl::StrCat("rollout.steps_per_iteration (", rollout.steps_per_iteration(),
                                                   ") must be a multiple of rollout.num_envs (", rollout.num_envs(),
                                                   ")"));
  }
  const uint32_t iteration = rollout.steps_per_iteration() / rollout.num_envs();
  if (rollout.fragment_steps() > 0 && iteration % rollout.fragment_steps() != 0) {
    return absl::InvalidArgumentError(absl::StrCat("rollout.fragment_steps (", rollout.fragment_steps(),
                                                   ") must divide the steps of each environment in an "
                                                   "iteration, steps_per_iteration / num_envs (",
                                                   iteration, ")"));
  }
  if (absl::Status status = CheckAlgorithm(config); !status.ok()) return status;
  if (absl::Status status = CheckGradientParts(config); !status.ok()) return status;
  if (absl::Status status = CheckCallbacks(config); !status.ok()) return status;
  if (absl::Status status = CheckPhases(config); !status.ok()) return status;
  for (int i = 0; i < config.phases_size(); ++i) {
    const absl::Status status = ValidateRunConfig(ConfigOfPhase(config, static_cast<uint32_t>(i)));
    if (!status.ok()) return absl::InvalidArgumentError(absl::StrCat("phases[", i, "].set: ", status.message()));
  }
  if (config.coordinator().lease_seconds() <= config.coordinator().heartbeat_seconds()) {
    return absl::InvalidArgumentError(absl::StrCat("coordinator.lease_seconds (",
                                                   NumberText(config.coordinator().lease_seconds()),
                                                   ") must be greater than coordinator.heartbeat_seconds (",
                                                   NumberText(config.coordinator().heartbeat_seconds()), ")"));
  }
  return absl::OkStatus();
}

absl::StatusOr<v1::RunConfig> ReadRunConfig(const std::string& path, const std::vector<std::string>& overrides,
                                            const v1::RunConfig& base) {
  v1::RunConfig config = base;
  if (!path.empty()) {
    absl::StatusOr<std::string> text = ReadFile(path, kMaxSettingsBytes);
    if (!text.ok()) return text.status();
    if (absl::Status status = MergeYaml(*text, path, &config); !status.ok()) return status;
  }
  for (const std::string& assignment : overrides) {
    if (absl::Status status = ApplyOverride(assignment, &config); !status.ok()) return status;
  }
  const v1::RunConfig given = config;
  ApplyDefaults(&config);
  if (absl::Status status = TakeSizesFromDirections(given, &config); !status.ok())
    return Located(path, overrides, status);
  return config;
}

absl::StatusOr<v1::RunConfig> LoadRunConfig(const std::string& path, const std::vector<std::string>& overrides,
                                            uint32_t env_groups, const v1::RunConfig& base) {
  absl::StatusOr<v1::RunConfig> config = ReadRunConfig(path, overrides, base);
  if (!config.ok()) return config.status();
  Resolve(env_groups, &*config);
  if (absl::Status status = ValidateRunConfig(*config); !status.ok()) return Located(path, overrides, status);
  return config;
}

std::string ToYaml(const v1::RunConfig& config) { return SettingsYaml(config); }

}  // namespace skein
