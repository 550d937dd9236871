// SPDX-License-Identifier: Apache-2.0
#include "base/config/message_settings.h"

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/types/span.h"
#include "base/config/config_reflection.h"
#include "base/process/file.h"
#include "base/process/message_text.h"
#include "spdlog/spdlog.h"

namespace skein {
namespace {

using config_reflection::ChoiceProblem;
using config_reflection::ElementText;
using config_reflection::FindNamed;
using config_reflection::IsChosen;
using config_reflection::JoinPath;
using config_reflection::ParseYaml;
using config_reflection::SetField;
using config_reflection::SetMessage;
using config_reflection::Source;
using config_reflection::UnknownKey;
using config_reflection::ValueText;
using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;

// Null for RunConfig, whose settings have synonyms, too.
const Descriptor* RootOf(const Message& message) {
  return message.GetDescriptor() == v1::RunConfig::descriptor() ? nullptr : message.GetDescriptor();
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
    const Source source{"the default", false};
    absl::StatusOr<YAML::Node> node = ParseYaml(value, source);
    const absl::Status status = node.ok() ? SetField(*node, source, field_path, field, message) : node.status();
    if (!status.ok()) {
      spdlog::critical("the default of {} is wrong: {}", field_path, std::string(status.message()));
      std::abort();
    }
  }
}

// The last of `overrides` that sets what `word` names: a setting by its path, or all phases. Null: none does.
const std::string* OverrideOf(absl::string_view word, const std::vector<std::string>& overrides) {
  if (!absl::StrContains(word, '.') && word != "phases") return nullptr;
  const auto sets = [word](const std::string& assignment) {
    const std::string key = assignment.substr(0, assignment.find('='));
    return absl::StripAsciiWhitespace(key) == word;
  };
  const auto found = std::find_if(overrides.rbegin(), overrides.rend(), sets);
  return found == overrides.rend() ? nullptr : &*found;
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

}  // namespace

absl::Status Locate(const std::string& path, const std::vector<std::string>& overrides, const absl::Status& status) {
  if (path.empty()) return status;
  const std::string message(status.message());
  const Source file{path, true};
  const auto text = ReadFile(path, kMaxSettingsBytes);
  if (!text.ok()) return text.status();
  const auto root = ParseYaml(*text, file);
  if (!root.ok()) return root.status();
  // What a phase sets is in the list of phases, wherever that is.
  const bool of_phases = absl::StartsWith(message, "phases[");
  const std::vector<absl::string_view> words = absl::StrSplit(message, absl::ByAnyChar(" (),:;["));
  for (const absl::string_view word : absl::MakeConstSpan(words).first(of_phases ? 1 : words.size())) {
    if (const std::string* const override = OverrideOf(word, overrides); override != nullptr) {
      return Source{absl::StrCat("--set ", Shown(*override)), false}.Error(YAML::Mark::null_mark(), message);
    }
    if (!FindNamed(*root, std::string(word)).is_null()) break;
  }
  return file.Error(FindNamed(*root, message), message);
}

absl::Status MergeSettings(const std::string& text, const std::string& source_name, Message* message) {
  const Source source{source_name, true, RootOf(*message)};
  absl::StatusOr<YAML::Node> node = ParseYaml(text, source);
  if (!node.ok()) return node.status();
  const std::unique_ptr<Message> merged(message->New());  // Nothing is changed on an error.
  merged->CopyFrom(*message);
  if (absl::Status status = SetMessage(*node, source, "", merged.get()); !status.ok()) return status;
  message->CopyFrom(*merged);
  return absl::OkStatus();
}

absl::Status OverrideSetting(const std::string& assignment, Message* root) {
  const Source source{absl::StrCat("--set ", Shown(assignment)), false, RootOf(*root)};
  const size_t equals = assignment.find('=');
  if (equals == std::string::npos) return source.Error(YAML::Mark::null_mark(), "expected a.b=value");
  const std::string path(absl::StripAsciiWhitespace(assignment.substr(0, equals)));
  const std::string value = assignment.substr(equals + 1);

  const std::unique_ptr<Message> changed(root->New());
  changed->CopyFrom(*root);
  Message* message = changed.get();
  const FieldDescriptor* field = nullptr;
  for (const std::string& key : std::vector<std::string>(absl::StrSplit(path, '.'))) {
    if (field != nullptr) {
      if (field->message_type() == nullptr || field->is_repeated()) {
        return source.Error(YAML::Mark::null_mark(), UnknownKey(path, source.root));
      }
      if (const std::string problem = ChoiceProblem(*message, field); !problem.empty()) {
        return source.Error(YAML::Mark::null_mark(), problem);
      }
      message = message->GetReflection()->MutableMessage(message, field);
    }
    field = message->GetDescriptor()->FindFieldByName(key);
    if (field == nullptr) return source.Error(YAML::Mark::null_mark(), UnknownKey(path, source.root));
  }
  if (const std::string problem = ChoiceProblem(*message, field); !problem.empty()) {
    return source.Error(YAML::Mark::null_mark(), problem);
  }
  if (field->cpp_type() == FieldDescriptor::CPPTYPE_STRING && !field->is_repeated() &&
      absl::StripAsciiWhitespace(value).empty()) {
    message->GetReflection()->SetString(message, field, "");
  } else {
    absl::StatusOr<YAML::Node> node = ParseYaml(value, source);
    if (!node.ok()) return node.status();
    if (absl::Status status = SetField(*node, source, path, field, message); !status.ok()) return status;
  }
  root->CopyFrom(*changed);
  return absl::OkStatus();
}

void SetDefaultSettings(Message* message) { SetDefaults(message, ""); }

std::string SettingsYaml(const Message& message) {
  YAML::Emitter out;
  EmitMessage(message, &out);
  return absl::StrCat(out.c_str(), "\n");
}

}  // namespace skein
