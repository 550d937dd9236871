// SPDX-License-Identifier: Apache-2.0
#include "base/config/setting_changes.h"

#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "base/config/config.h"
#include "base/config/config_reflection.h"
#include "base/config/phases.h"
#include "base/process/message_text.h"
#include "nlohmann/json.hpp"

namespace skein {
namespace {

using config_reflection::ElementText;
using config_reflection::JoinPath;
using config_reflection::ValueText;
using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using nlohmann::json;

constexpr char kSource[] = "changes", kWhere[] = "set";

absl::Status WithoutSource(const absl::Status& status) {
  absl::string_view message = status.message();
  absl::ConsumePrefix(&message, absl::StrCat(kSource, ": "));
  return absl::Status(status.code(), message);
}

// `text` as a setting is written: a number or a truth value as JSON, all else as a string.
json Value(const FieldDescriptor* field, const std::string& text) {
  const bool is_text =
      field->cpp_type() == FieldDescriptor::CPPTYPE_STRING || field->cpp_type() == FieldDescriptor::CPPTYPE_ENUM;
  if (is_text) return text;
  json value = json::parse(text, nullptr, false);
  return value.is_discarded() ? json(text) : value;
}

void Collect(const Message& message, const std::string& path, json* settings) {
  std::vector<const FieldDescriptor*> fields;
  message.GetReflection()->ListFields(message, &fields);
  for (const FieldDescriptor* const field : fields) {
    const std::string name = JoinPath(path, field->name());
    if (field->message_type() != nullptr) {
      if (!field->is_repeated()) Collect(message.GetReflection()->GetMessage(message, field), name, settings);
    } else if (field->is_repeated()) {
      json& list = (*settings)[name] = json::array();
      for (int i = 0; i < message.GetReflection()->FieldSize(message, field); ++i) {
        list.push_back(Value(field, ElementText(message, field, i)));
      }
    } else {
      (*settings)[name] = Value(field, ValueText(message, field));
    }
  }
}

}  // namespace

json SettingsByName(const v1::RunConfig& config) {
  json settings = json::object();
  Collect(config, "", &settings);
  return settings;
}

absl::StatusOr<v1::RunConfig> ReadChanges(const v1::RunConfig& config, const std::string& changes) {
  const config_reflection::Source source{kSource, false};
  const auto node = config_reflection::ParseYaml(changes, source);
  if (!node.ok()) return WithoutSource(node.status());
  v1::RunConfig set;
  if (absl::Status s = config_reflection::SetChanges(*node, source, kWhere, &set); !s.ok()) return WithoutSource(s);
  if (set.has_env() || set.has_directions()) {
    return absl::InvalidArgumentError(
        absl::StrCat(kWhere, ".", DescribeSettings(set), ": actors need to know it beforehand; use phases"));
  }
  if (absl::Status s = CheckChanges(config, set, kWhere); !s.ok()) return s;
  if (absl::Status s = ValidateRunConfig(WithSettings(config, set)); !s.ok()) {
    return absl::InvalidArgumentError(absl::StrCat(kWhere, ": ", s.message()));
  }
  return set;
}

absl::Status CheckCallbacks(const v1::RunConfig& config) {
  const std::string& python = config.callbacks().python();
  if (python.empty()) return absl::OkStatus();
  bool good = false;
  if (absl::StartsWith(python, "exec:")) {
    good = python.find_first_not_of(' ', 5) != std::string::npos;
  } else {
    const std::string path = python.substr(0, python.find('?'));
    const size_t colon = path.find(':');
    good = colon != std::string::npos && colon > 0 && colon + 1 < path.size();
  }
  if (good) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("callbacks.python: got ", Quoted(python), ", want package.module:function or exec:PROGRAM"));
}

}  // namespace skein
