// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "google/protobuf/descriptor.h"
#include "google/protobuf/message.h"
#include "skein/v1/config.pb.h"
#include "yaml-cpp/yaml.h"

// Reads, checks and writes settings of a configuration message by reflection over the (setting) options, for config.cc.
// A path is the dotted name of a setting from the root, e.g. "ppo.lr".
namespace skein::config_reflection {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;

// Origin of a YAML text, for error messages.
struct Source {
  std::string name;
  bool has_lines = true;  // Whether messages have line and column.
  // Of the message that is read, to name its nearest setting; null = RunConfig.
  const google::protobuf::Descriptor* root = nullptr;

  // InvalidArgument "name:line:column: message".
  absl::Status Error(const YAML::Mark& mark, const std::string& message) const;
};

// Parses one YAML document. InvalidArgument: syntax, several documents, anchors, aliases or tags, over 1 MiB.
absl::StatusOr<YAML::Node> ParseYaml(const std::string& text, const Source& source);

// Where `root` has the value of the first setting that `message` names by its path; null if it has none of them. For a
// message that begins with a phase, as "phases[0].set: ppo.lr ...", what this phase sets, else the phase's settings.
YAML::Mark FindNamed(const YAML::Node& root, const std::string& message);

// For sections that exclude each other (a oneof): whether `field` is the section that `message` has. If none is given,
// it is the first one. True for all other fields.
bool IsChosen(const Message& message, const FieldDescriptor* field);
// The reason why `field` may not be set in `message` (another section of its oneof is set already), or empty.
std::string ChoiceProblem(const Message& message, const FieldDescriptor* field);

// Sets the fields of `message` that the mapping `node` names. `path` is the message's path, empty at the root.
absl::Status SetMessage(const YAML::Node& node, const Source& source, const std::string& path, Message* message);

// Sets one field; the field may be a section, or the list of phases.
absl::Status SetField(const YAML::Node& node, const Source& source, const std::string& path,
                      const FieldDescriptor* field, Message* message);

// Sets RunConfig.phases from the sequence `node`. `set` of a phase may have sections or keys like "ppo.lr". Refuses
// phases out of order and settings that may not change during a run.
absl::Status SetPhases(const YAML::Node& node, const Source& source, v1::RunConfig* config);
// Sets the settings of `set` that the mapping `node` names, in sections or by keys like "ppo.lr". `where` begins the
// messages. Refuses settings that may not change during a run.
absl::Status SetChanges(const YAML::Node& node, const Source& source, const std::string& where, v1::RunConfig* set);
inline constexpr char kCannotChange[] =
    "cannot change during a run; docs/tuning.md lists the settings that a phase may set";

// Sets EnvConfig.transforms from the sequence `node` of names ("clip") and of mappings of one key ("{stack: 4}").
absl::Status SetTransforms(const YAML::Node& node, const Source& source, const std::string& path,
                           v1::EnvConfig* config);

// The message "unknown key 'PATH'; the nearest is 'OTHER'" for a path that no setting of `root` has; null = RunConfig.
// Where none is near but the section is known: "unknown key 'PATH'; SECTION has a, b, c".
std::string UnknownKey(const std::string& path, const google::protobuf::Descriptor* root = nullptr);

// Checks that each setting below `message` is set and in its range. InvalidArgument names the first that is not.
absl::Status CheckSettings(const Message& message, const std::string& path);

inline std::string JoinPath(const std::string& path, const std::string& key) {
  return path.empty() ? key : path + "." + key;
}

// The shortest text that reads back as the same number; whole numbers have no exponent.
std::string NumberText(double value);

// The value of a field that is no section, for people: "on_policy", "[64, 64]"; and one element of a list.
std::string ElementText(const Message& message, const FieldDescriptor* field, int index);
std::string ValueText(const Message& message, const FieldDescriptor* field);

// "on_policy" for SYNC_MODE_ON_POLICY.
std::string EnumName(const google::protobuf::EnumValueDescriptor* value);

}  // namespace skein::config_reflection
