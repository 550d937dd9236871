// SPDX-License-Identifier: Apache-2.0
#include "base/config/config.h"

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/config/algorithm_rules.h"
#include "base/config/config_reflection.h"
#include "base/config/direction_rules.h"
#include "base/config/phases.h"
#include "base/config/resource_rules.h"
#include "base/config/transform_rules.h"
#include "base/process/file.h"
#include "base/process/message_text.h"
#include "spdlog/spdlog.h"

namespace skein {
namespace {

using config_reflection::CheckSettings;
using config_reflection::ChoiceProblem;
using config_reflection::ElementText;
using config_reflection::FindNamed;
using config_reflection::IsChosen;
using config_reflection::JoinPath;
using config_reflection::NumberText;
using config_reflection::ParseYaml;
using config_reflection::SetField;
using config_reflection::SetMessage;
using config_reflection::Source;
using config_reflection::UnknownKey;
using config_reflection::ValueText;
using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;

constexpr uint64_t kMaxFileBytes = 1 << 20;

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

bool IsEmpty(const Message& message) {
  std::vector<const FieldDescriptor*> set;
  message.GetReflection()->ListFields(message, &set);
  return set.empty();
}

void SetDefaults(Message* message, const std::string& path) {
  const Reflection* reflection = message->GetReflection();
  for (int i = 0; i < message->GetDescriptor()->field_count(); ++i) {
    const FieldDescriptor* field = message->GetDescriptor()->field(i);
    const std::string field_path = JoinPath(path, field->name());
    if (field->message_type() != nullptr) {
      if (field->is_repeated() || !IsChosen(*message, field)) continue;
      Message* const section = reflection->MutableMessage(message, field);
      SetDefaults(section, field_path);
      if (IsEmpty(*section)) reflection->ClearField(message, field);  // Nothing in it has a default.
      continue;
    }
    const bool set =
        field->is_repeated() ? reflection->FieldSize(*message, field) > 0 : reflection->HasField(*message, field);
    if (set || field->options().GetExtension(v1::setting).no_default()) continue;
    const std::string& value = field->options().GetExtension(v1::setting).default_value();
    if (field->cpp_type() == FieldDescriptor::CPPTYPE_STRING) {
      reflection->SetString(message, field, value);
      continue;
    }
    const Source source{"config.proto", false};
    absl::StatusOr<YAML::Node> node = ParseYaml(value, source);
    const absl::Status status = node.ok() ? SetField(*node, source, field_path, field, message) : node.status();
    if (!status.ok()) {
      spdlog::critical("the default of {} is wrong: {}", field_path, std::string(status.message()));
      std::abort();
    }
  }
}

void EmitMessage(const Message& message, YAML::Emitter* out) {
  const Reflection* reflection = message.GetReflection();
  *out << YAML::BeginMap;
  for (int i = 0; i < message.GetDescriptor()->field_count(); ++i) {
    const FieldDescriptor* field = message.GetDescriptor()->field(i);
    const bool set =
        field->is_repeated() ? reflection->FieldSize(message, field) > 0 : reflection->HasField(message, field);
    if (!set) continue;
    *out << YAML::Key << field->name() << YAML::Value;
    const bool section = field->message_type() != nullptr;
    if (field->is_repeated()) {
      if (!section) *out << YAML::Flow;
      *out << YAML::BeginSeq;
      for (int j = 0; j < reflection->FieldSize(message, field); ++j) {
        if (section) {
          EmitMessage(reflection->GetRepeatedMessage(message, field, j), out);
        } else if (field->cpp_type() == FieldDescriptor::CPPTYPE_STRING) {
          *out << YAML::DoubleQuoted << ElementText(message, field, j);
        } else {
          *out << ElementText(message, field, j);
        }
      }
      *out << YAML::EndSeq;
    } else if (section) {
      EmitMessage(reflection->GetMessage(message, field), out);
    } else if (field->cpp_type() == FieldDescriptor::CPPTYPE_STRING) {
      *out << YAML::DoubleQuoted << reflection->GetString(message, field);
    } else {
      *out << ValueText(message, field);
    }
  }
  *out << YAML::EndMap;
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

}  // namespace

absl::Status InFile(const std::string& path, const absl::Status& status) {
  if (path.empty()) return status;
  const Source source{path, true};
  const std::string message(status.message());
  const auto text = ReadFile(path, kMaxFileBytes);
  if (!text.ok()) return text.status();
  const auto root = ParseYaml(*text, source);
  if (!root.ok()) return root.status();
  return source.Error(FindNamed(*root, message), message);
}

absl::Status MergeYaml(const std::string& text, const std::string& source_name, v1::RunConfig* config) {
  const Source source{source_name, true};
  absl::StatusOr<YAML::Node> node = ParseYaml(text, source);
  if (!node.ok()) return node.status();
  v1::RunConfig merged = *config;  // Nothing is changed on an error.
  if (absl::Status status = SetMessage(*node, source, "", &merged); !status.ok()) return status;
  *config = std::move(merged);
  return absl::OkStatus();
}

absl::Status ApplyOverride(const std::string& assignment, v1::RunConfig* config) {
  const Source source{absl::StrCat("--set ", Shown(assignment)), false};
  const size_t equals = assignment.find('=');
  if (equals == std::string::npos) return source.Error(YAML::Mark::null_mark(), "expected a.b=value");
  const std::string path(absl::StripAsciiWhitespace(assignment.substr(0, equals)));
  const std::string value = assignment.substr(equals + 1);

  v1::RunConfig changed = *config;
  Message* message = &changed;
  const FieldDescriptor* field = nullptr;
  for (const std::string& key : std::vector<std::string>(absl::StrSplit(path, '.'))) {
    if (field != nullptr) {
      if (field->message_type() == nullptr || field->is_repeated()) {
        return source.Error(YAML::Mark::null_mark(), UnknownKey(path));
      }
      if (const std::string problem = ChoiceProblem(*message, field); !problem.empty()) {
        return source.Error(YAML::Mark::null_mark(), problem);
      }
      message = message->GetReflection()->MutableMessage(message, field);
    }
    field = message->GetDescriptor()->FindFieldByName(key);
    if (field == nullptr) return source.Error(YAML::Mark::null_mark(), UnknownKey(path));
  }
  if (const std::string problem = ChoiceProblem(*message, field); !problem.empty()) {
    return source.Error(YAML::Mark::null_mark(), problem);
  }
  if (field->cpp_type() == FieldDescriptor::CPPTYPE_STRING && absl::StripAsciiWhitespace(value).empty()) {
    message->GetReflection()->SetString(message, field, "");
  } else {
    absl::StatusOr<YAML::Node> node = ParseYaml(value, source);
    if (!node.ok()) return node.status();
    if (absl::Status status = SetField(*node, source, path, field, message); !status.ok()) return status;
  }
  *config = std::move(changed);
  return absl::OkStatus();
}

void ApplyDefaults(v1::RunConfig* config) { SetDefaults(config, ""); }

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
    absl::StatusOr<std::string> text = ReadFile(path, kMaxFileBytes);
    if (!text.ok()) return text.status();
    if (absl::Status status = MergeYaml(*text, path, &config); !status.ok()) return status;
  }
  for (const std::string& assignment : overrides) {
    if (absl::Status status = ApplyOverride(assignment, &config); !status.ok()) return status;
  }
  const v1::RunConfig given = config;
  ApplyDefaults(&config);
  if (absl::Status status = TakeSizesFromDirections(given, &config); !status.ok()) return InFile(path, status);
  return config;
}

absl::StatusOr<v1::RunConfig> LoadRunConfig(const std::string& path, const std::vector<std::string>& overrides,
                                            uint32_t env_groups, const v1::RunConfig& base) {
  absl::StatusOr<v1::RunConfig> config = ReadRunConfig(path, overrides, base);
  if (!config.ok()) return config.status();
  Resolve(env_groups, &*config);
  if (absl::Status status = ValidateRunConfig(*config); !status.ok()) return InFile(path, status);
  return config;
}

std::string ToYaml(const v1::RunConfig& config) {
  YAML::Emitter out;
  EmitMessage(config, &out);
  return absl::StrCat(out.c_str(), "\n");
}

}  // namespace skein
