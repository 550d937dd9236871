// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "google/protobuf/descriptor.h"
#include "google/protobuf/message.h"
#include "skein/v1/config.pb.h"
#include "yaml-cpp/yaml.h"

// The settings of a configuration message by reflection over the (setting) options; what config.cc is made of.
// A path is the dotted name of a setting from the root, e.g. "ppo.lr".
namespace skein::config_reflection {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;

// Where a YAML text came from, for messages.
struct Source {
  std::string name;
  bool has_lines = true;  // Whether line and column mean something to the reader.

  // InvalidArgument "name:line:column: message".
  absl::Status Error(const YAML::Mark& mark, const std::string& message) const;
};

// Parses one YAML document. InvalidArgument: syntax, several documents, anchors, aliases or tags, over 1 MiB.
absl::StatusOr<YAML::Node> ParseYaml(const std::string& text, const Source& source);

// Of sections of which a configuration has one (a oneof): whether `field` of `message` is that one. Where none is given
// it is the first. True for all other fields.
bool IsChosen(const Message& message, const FieldDescriptor* field);
// Why `field` may not be given beside what `message` has, or empty: another section of its oneof is given already.
std::string ChoiceProblem(const Message& message, const FieldDescriptor* field);

// Sets the fields of `message` that mapping `node` names. `path` is that of the message, empty at the root.
absl::Status SetMessage(const YAML::Node& node, const Source& source, const std::string& path, Message* message);

// Sets one field, a section included.
absl::Status SetField(const YAML::Node& node, const Source& source, const std::string& path,
                      const FieldDescriptor* field, Message* message);

// "unknown key 'PATH'; the nearest is 'OTHER'" for a path that no setting has.
std::string UnknownKey(const std::string& path);

// Checks that each setting below `message` is set and in its range. InvalidArgument names the first that is not.
absl::Status CheckSettings(const Message& message, const std::string& path);

inline std::string JoinPath(const std::string& path, const std::string& key) {
  return path.empty() ? key : path + "." + key;
}

// Reads back as the same number; as few digits as that takes, whole numbers without an exponent.
std::string NumberText(double value);

// "on_policy" for SYNC_MODE_ON_POLICY.
std::string EnumName(const google::protobuf::EnumValueDescriptor* value);

}  // namespace skein::config_reflection
