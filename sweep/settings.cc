// SPDX-License-Identifier: Apache-2.0
#include "sweep/settings.h"

#include <algorithm>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/config/config.h"
#include "base/config/config_reflection.h"
#include "base/process/message_text.h"

namespace skein {
namespace {

using config_reflection::Source;
using google::protobuf::FieldDescriptor;
using google::protobuf::Message;

}  // namespace

absl::Status SetSetting(const YAML::Node& key, const std::string& path, const YAML::Node& node,
                        const std::string& source_name, v1::RunConfig* config) {
  const Source source{source_name, true};
  Message* message = config;
  const std::vector<std::string> names = absl::StrSplit(path, '.');
  for (size_t i = 0; i < names.size(); ++i) {
    const FieldDescriptor* const field = message->GetDescriptor()->FindFieldByName(names[i]);
    if (field == nullptr) return source.Error(key.Mark(), config_reflection::UnknownKey(path));
    if (const std::string problem = config_reflection::ChoiceProblem(*message, field); !problem.empty()) {
      return source.Error(key.Mark(), absl::StrCat(path, ": ", problem));
    }
    const bool section = field->message_type() != nullptr;
    if (i + 1 == names.size()) {
      if (section)
        return source.Error(key.Mark(), absl::StrCat(Quoted(path), " is a section; a sweep varies settings"));
      return config_reflection::SetField(node, source, path, field, message);
    }
    if (!section || field->is_repeated()) return source.Error(key.Mark(), config_reflection::UnknownKey(path));
    message = message->GetReflection()->MutableMessage(message, field);
  }
  return source.Error(key.Mark(), config_reflection::UnknownKey(path));
}

std::string SettingText(const v1::RunConfig& config, const std::string& path) {
  const Message* message = &config;
  const std::vector<std::string> names = absl::StrSplit(path, '.');
  for (size_t i = 0; i < names.size(); ++i) {
    const FieldDescriptor* const field = message->GetDescriptor()->FindFieldByName(names[i]);
    if (field == nullptr) return "";
    const bool section = field->message_type() != nullptr;
    if (i + 1 == names.size()) return section ? "" : config_reflection::ValueText(*message, field);
    if (!section || field->is_repeated()) return "";
    message = &message->GetReflection()->GetMessage(*message, field);
  }
  return "";
}

absl::StatusOr<v1::RunConfig> ConfigAt(const Space& space, const Point& point, const v1::RunConfig& base) {
  v1::RunConfig config = base;
  for (const std::string& override : Overrides(space, point)) {
    if (absl::Status status = ApplyOverride(override, &config); !status.ok()) return status;
  }
  return config;
}

bool MeetsConstraints(const Space& space, const Point& point, const v1::RunConfig& base) {
  if (space.constraints.empty()) return true;
  const auto config = ConfigAt(space, point, base);
  if (!config.ok()) return false;
  const auto lookup = [&](const std::string& path) { return SettingText(*config, path); };
  return std::all_of(space.constraints.begin(), space.constraints.end(),
                     [&](const Constraint& one) { return one.Holds(lookup); });
}

}  // namespace skein
