// SPDX-License-Identifier: Apache-2.0
#include "base/config/phases.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/config/algorithm_rules.h"
#include "base/config/config_reflection.h"

namespace skein {
namespace {

using config_reflection::JoinPath;
using config_reflection::kCannotChange;
using config_reflection::ValueText;
using google::protobuf::FieldDescriptor;
using google::protobuf::Message;

std::vector<const FieldDescriptor*> FieldsOf(const Message& message) {
  std::vector<const FieldDescriptor*> fields;
  message.GetReflection()->ListFields(message, &fields);
  return fields;
}

// MergeFrom would append lists.
void ClearLists(const Message& set, Message* config) {
  for (const FieldDescriptor* const field : FieldsOf(set)) {
    if (field->is_repeated()) {
      config->GetReflection()->ClearField(config, field);
    } else if (field->message_type() != nullptr) {
      ClearLists(set.GetReflection()->GetMessage(set, field), config->GetReflection()->MutableMessage(config, field));
    }
  }
}

// Calls visit(path, field, message) for each setting below `message`.
template <typename Visit>
void ForEachSetting(const Message& message, const std::string& path, const Visit& visit) {
  for (const FieldDescriptor* const field : FieldsOf(message)) {
    const std::string field_path = JoinPath(path, field->name());
    if (field->message_type() != nullptr && !field->is_repeated()) {
      ForEachSetting(message.GetReflection()->GetMessage(message, field), field_path, visit);
    } else {
      visit(field_path, field, message);
    }
  }
}

}  // namespace

uint32_t PhaseAt(const v1::RunConfig& config, uint64_t env_steps) {
  const auto in_force = std::find_if(config.phases().begin(), config.phases().end(),
                                     [&](const v1::PhaseConfig& phase) { return env_steps < phase.until_steps(); });
  return static_cast<uint32_t>(in_force - config.phases().begin());
}

v1::RunConfig ConfigOfPhase(const v1::RunConfig& config, uint32_t phase) {
  v1::RunConfig result = config;
  result.clear_phases();
  if (phase >= static_cast<uint32_t>(config.phases_size())) return result;
  return WithSettings(result, config.phases(static_cast<int>(phase)).set());
}

v1::RunConfig WithSettings(const v1::RunConfig& config, const v1::RunConfig& set) {
  v1::RunConfig result = config;
  ClearLists(set, &result);
  result.MergeFrom(set);
  return result;
}

uint32_t EnvPhase(const v1::RunConfig& config, uint32_t phase) {
  const auto env_of = [&](uint32_t p) { return ConfigOfPhase(config, p).env().SerializeAsString(); };
  const std::string env = env_of(phase);
  const auto own = static_cast<uint32_t>(config.phases_size());
  for (uint32_t p = 0; p < own; ++p) {
    if (env_of(p) == env) return p;
  }
  return own;
}

std::string DescribeSettings(const v1::RunConfig& set) {
  std::vector<std::string> settings;
  ForEachSetting(set, "", [&](const std::string& path, const FieldDescriptor* field, const Message& message) {
    settings.push_back(absl::StrCat(path, " ", ValueText(message, field)));
  });
  return absl::StrJoin(settings, ", ");
}

std::string DescribePhase(const v1::RunConfig& config, uint32_t phase) {
  if (phase >= static_cast<uint32_t>(config.phases_size())) return "";
  return DescribeSettings(config.phases(static_cast<int>(phase)).set());
}

absl::Status CheckChanges(const v1::RunConfig& config, const v1::RunConfig& set, const std::string& path) {
  if (absl::Status status = CheckAlgorithmChanges(config, set, path); !status.ok()) return status;
  if (set.has_env() && config.sync().mode() == v1::SYNC_MODE_ON_DEVICE) {
    return absl::InvalidArgumentError(absl::StrCat(
        path, ".env: environments on the device cannot change their settings; use another sync.mode than on_device"));
  }
  std::string fixed;
  ForEachSetting(set, "", [&](const std::string& setting, const FieldDescriptor* field, const Message&) {
    if (!field->options().GetExtension(v1::setting).may_change()) fixed = setting;
  });
  if (fixed.empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(path, ".", fixed, ": ", kCannotChange));
}

absl::Status CheckPhases(const v1::RunConfig& config) {
  uint64_t before = 0;
  for (int i = 0; i < config.phases_size(); ++i) {
    const v1::PhaseConfig& phase = config.phases(i);
    const std::string path = absl::StrCat("phases[", i, "]");
    if (!phase.has_until_steps()) return absl::InvalidArgumentError(absl::StrCat(path, ".until_steps is not set"));
    if (phase.until_steps() <= before) {
      return absl::InvalidArgumentError(absl::StrCat(path, ".until_steps: must be greater than ", before,
                                                     i == 0 ? "" : ", where the phase before ends", ", got ",
                                                     phase.until_steps()));
    }
    before = phase.until_steps();
    if (phase.set().has_directions() && !SearchesDirections(config)) {
      return absl::InvalidArgumentError(
          absl::StrCat(path, ".set.directions: ", AlgorithmName(config), " searches over no directions"));
    }
    if (absl::Status status = CheckChanges(config, phase.set(), path + ".set"); !status.ok()) return status;
  }
  return absl::OkStatus();
}

}  // namespace skein
