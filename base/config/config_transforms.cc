// SPDX-License-Identifier: Apache-2.0
// The reading of EnvConfig.transforms, a part of config_reflection.h.
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/config/config_reflection.h"
#include "base/process/message_text.h"

namespace skein::config_reflection {
namespace {

absl::Status SetTransform(const YAML::Node& node, const Source& source, const std::string& path,
                          v1::EnvTransform* transform) {
  const bool named = node.IsScalar();
  if (!named && (!node.IsMap() || node.size() != 1)) {
    return source.Error(node.Mark(), path + ": expected one name such as clip, or one name with a value: {stack: 4}");
  }
  const YAML::Node key = named ? node : node.begin()->first;
  const auto* const descriptor = v1::EnvTransform::descriptor();
  const FieldDescriptor* const field = key.IsScalar() ? descriptor->FindFieldByName(key.Scalar()) : nullptr;
  if (field == nullptr) {
    std::vector<std::string> names;
    for (int i = 0; i < descriptor->field_count(); ++i) names.push_back(descriptor->field(i)->name());
    return source.Error(key.Mark(),
                        absl::StrCat(path, ": unknown transform ", key.IsScalar() ? Quoted(key.Scalar()) : "",
                                     "; there are ", absl::StrJoin(names, ", ")));
  }
  const std::string setting = JoinPath(path, field->name());
  if (!named) return SetField(node.begin()->second, source, setting, field, transform);
  if (field->cpp_type() != FieldDescriptor::CPPTYPE_BOOL) {
    return source.Error(key.Mark(), absl::StrCat(setting, ": needs a value, as in {", field->name(), ": ...}"));
  }
  transform->GetReflection()->SetBool(transform, field, true);
  return absl::OkStatus();
}

}  // namespace

absl::Status SetTransforms(const YAML::Node& node, const Source& source, const std::string& path,
                           v1::EnvConfig* config) {
  if (!node.IsSequence()) {
    return source.Error(node.Mark(), path + ": expected a list such as [clip, {stack: 4}]");
  }
  config->clear_transforms();
  for (size_t i = 0; i < node.size(); ++i) {
    const std::string element = absl::StrCat(path, "[", i, "]");
    if (absl::Status s = SetTransform(node[i], source, element, config->add_transforms()); !s.ok()) return s;
  }
  return absl::OkStatus();
}

}  // namespace skein::config_reflection
