// SPDX-License-Identifier: Apache-2.0
// The reading of RunConfig.phases, a part of config_reflection.h.
#include <set>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/config/config_reflection.h"
#include "base/process/message_text.h"

namespace skein::config_reflection {
namespace {

// The field that `key`, maybe with dots, names below *message; *message becomes the section that has it. Null: there is
// none, or the path leads through another section of a oneof than the one that is set.
const FieldDescriptor* FindSetting(const std::string& key, Message** message) {
  const FieldDescriptor* field = nullptr;
  for (const std::string& name : std::vector<std::string>(absl::StrSplit(key, '.'))) {
    if (field != nullptr) {
      if (field->message_type() == nullptr || field->is_repeated()) return nullptr;
      *message = (*message)->GetReflection()->MutableMessage(*message, field);
    }
    field = (*message)->GetDescriptor()->FindFieldByName(name);
    if (field == nullptr || !ChoiceProblem(**message, field).empty()) return nullptr;
  }
  return field;
}

// `where` is the place of the phase's `set`, `path` that of `message` in the run's settings.
absl::Status SetBelow(const YAML::Node& node, const Source& source, const std::string& where, const std::string& path,
                      std::set<std::string>* seen, Message* message) {
  if (node.IsNull()) return absl::OkStatus();
  if (!node.IsMap()) return source.Error(node.Mark(), where + ": expected keys and values such as {ppo.lr: 1e-4}");
  for (const auto& entry : node) {
    const YAML::Node& key = entry.first;
    if (!key.IsScalar()) return source.Error(key.Mark(), where + ": expected a key");
    const std::string setting = JoinPath(path, key.Scalar());
    Message* section = message;
    const FieldDescriptor* const field = FindSetting(key.Scalar(), &section);
    if (field == nullptr) return source.Error(key.Mark(), absl::StrCat(where, ": ", UnknownKey(setting)));
    if (field->message_type() != nullptr && !field->is_repeated()) {
      Message* const below = section->GetReflection()->MutableMessage(section, field);
      if (absl::Status s = SetBelow(entry.second, source, where, setting, seen, below); !s.ok()) return s;
      continue;
    }
    if (!field->options().GetExtension(v1::setting).may_change()) {
      return source.Error(key.Mark(), absl::StrCat(where, ".", setting, ": ", kCannotChange));
    }
    if (!seen->insert(setting).second) {
      return source.Error(key.Mark(), absl::StrCat(where, ".", setting, " is given twice"));
    }
    if (absl::Status s = SetField(entry.second, source, where + "." + setting, field, section); !s.ok()) return s;
  }
  return absl::OkStatus();
}

absl::Status SetPhase(const YAML::Node& node, const Source& source, const std::string& path, v1::PhaseConfig* phase) {
  if (!node.IsMap()) return source.Error(node.Mark(), path + ": expected until_steps and set");
  std::set<std::string> seen;
  for (const auto& entry : node) {
    const YAML::Node& key = entry.first;
    const std::string name = key.IsScalar() ? key.Scalar() : "";
    if (!seen.insert(name).second) return source.Error(key.Mark(), absl::StrCat(path, ".", name, " is given twice"));
    absl::Status status;
    if (name == "until_steps") {
      status = SetField(entry.second, source, path + ".until_steps",
                        v1::PhaseConfig::descriptor()->FindFieldByName(name), phase);
    } else if (name == "set") {
      status = SetChanges(entry.second, source, path + ".set", phase->mutable_set());
    } else {
      status = source.Error(key.Mark(),
                            absl::StrCat(path, ": unknown key ", Quoted(name), "; a phase has until_steps and set"));
    }
    if (!status.ok()) return status;
  }
  if (!phase->has_until_steps()) return source.Error(node.Mark(), path + ".until_steps is not set");
  return absl::OkStatus();
}

}  // namespace

absl::Status SetChanges(const YAML::Node& node, const Source& source, const std::string& where, v1::RunConfig* set) {
  std::set<std::string> seen;
  return SetBelow(node, source, where, "", &seen, set);
}

absl::Status SetPhases(const YAML::Node& node, const Source& source, v1::RunConfig* config) {
  if (!node.IsSequence()) {
    return source.Error(node.Mark(), "phases: expected a list such as [{until_steps: 1e6, set: {ppo.lr: 1e-4}}]");
  }
  config->clear_phases();
  uint64_t before = 0;
  for (size_t i = 0; i < node.size(); ++i) {
    const std::string path = absl::StrCat("phases[", i, "]");
    v1::PhaseConfig* const phase = config->add_phases();
    if (absl::Status s = SetPhase(node[i], source, path, phase); !s.ok()) return s;
    if (phase->until_steps() <= before) {
      return source.Error(node[i]["until_steps"].Mark(),
                          absl::StrCat(path, ".until_steps: must be greater than ", before,
                                       ", where the phase before ends, got ", phase->until_steps()));
    }
    before = phase->until_steps();
  }
  return absl::OkStatus();
}

}  // namespace skein::config_reflection
