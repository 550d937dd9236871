// SPDX-License-Identifier: Apache-2.0
#include "base/config/config_reflection.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/config/nearest_name.h"
#include "base/process/message_text.h"
#include "skein/v1/fit.pb.h"

namespace skein::config_reflection {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::EnumDescriptor;
using google::protobuf::EnumValueDescriptor;
using google::protobuf::OneofDescriptor;
using google::protobuf::Reflection;

// As the user wrote it, for messages.
std::string Written(const YAML::Node& node) {
  if (node.IsNull()) return "nothing";
  if (node.IsMap()) return "a mapping";
  if (node.IsSequence()) return "a list";
  const bool quoted = node.Tag() == "!";
  return quoted ? absl::StrCat("the text \"", Shown(node.Scalar()), "\"") : Quoted(node.Scalar());
}

bool IsPlain(const YAML::Node& node) { return node.IsScalar() && node.Tag() != "!"; }

// What is wrong with `value` of `field`, or empty.
std::string RangeProblem(const FieldDescriptor* field, double value) {
  const v1::Setting& setting = field->options().GetExtension(v1::setting);
  const auto got = [&] { return absl::StrCat(", got ", NumberText(value)); };
  if (std::isnan(value) || (std::isinf(value) && !setting.may_be_infinite())) {
    return absl::StrCat("must be a finite number", got());
  }
  if (setting.has_min() && setting.above_min() && value <= setting.min()) {
    return absl::StrCat("must be greater than ", NumberText(setting.min()), got());
  }
  if (setting.has_min() && value < setting.min())
    return absl::StrCat("must be at least ", NumberText(setting.min()), got());
  if (setting.has_max() && value > setting.max())
    return absl::StrCat("must be at most ", NumberText(setting.max()), got());
  return "";
}

// Reads a number for `field`; returns what is wrong, or empty.
std::string ReadDouble(const YAML::Node& node, const FieldDescriptor* field, double* value) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  static const auto* const kNotFinite = new std::map<std::string, double>{
      {".inf", kInfinity}, {"+.inf", kInfinity}, {"-.inf", -kInfinity}, {".nan", std::nan("")}};
  const auto found = kNotFinite->find(absl::AsciiStrToLower(node.Scalar()));
  if (IsPlain(node) && found != kNotFinite->end()) {
    *value = found->second;
    if (RangeProblem(field, *value).empty()) return "";
    return absl::StrCat("must be a finite number, got ", Written(node));
  }
  if (!IsPlain(node) || !absl::SimpleAtod(node.Scalar(), value)) {
    return absl::StrCat("expected a number, got ", Written(node));
  }
  return RangeProblem(field, *value);
}

// Whole numbers may also be written like 1e6.
std::string ReadUnsigned(const YAML::Node& node, const FieldDescriptor* field, uint64_t largest, uint64_t* value) {
  constexpr double kExactUpTo = 9007199254740992.0;  // 2^53.
  if (!IsPlain(node) || !absl::SimpleAtoi(node.Scalar(), value)) {
    double number = 0;
    if (!IsPlain(node) || !absl::SimpleAtod(node.Scalar(), &number) || std::isnan(number)) {
      return absl::StrCat("expected a whole number, got ", Written(node));
    }
    if (number < 0) return absl::StrCat("must be at least 0, got ", Written(node));
    if (number > kExactUpTo) return absl::StrCat("must be at most ", largest, ", got ", Written(node));
    if (number != std::floor(number)) return absl::StrCat("expected a whole number, got ", Written(node));
    *value = static_cast<uint64_t>(number);
  }
  if (*value > largest) return absl::StrCat("must be at most ", largest, ", got ", Written(node));
  return RangeProblem(field, static_cast<double>(*value));
}

std::string ReadEnum(const YAML::Node& node, const FieldDescriptor* field, const EnumValueDescriptor** value) {
  const EnumDescriptor* type = field->enum_type();
  std::vector<std::string> names;
  for (int i = 0; i < type->value_count(); ++i) {
    if (type->value(i)->number() == 0) continue;  // Unspecified.
    names.push_back(EnumName(type->value(i)));
    if (node.IsScalar() && node.Scalar() == names.back()) {
      *value = type->value(i);
      return "";
    }
  }
  return absl::StrCat("expected one of ", absl::StrJoin(names, ", "), "; got ", Written(node),
                      node.IsScalar() ? NearestHint(node.Scalar(), names, '_') : "");
}

// Sets a scalar field, or adds to a list; returns what is wrong, or empty.
std::string SetScalar(const YAML::Node& node, const FieldDescriptor* field, Message* message) {
  const Reflection* reflection = message->GetReflection();
  std::string problem;
  switch (field->cpp_type()) {
    case FieldDescriptor::CPPTYPE_DOUBLE: {
      double value = 0;
      problem = ReadDouble(node, field, &value);
      if (!problem.empty()) return problem;
      if (field->is_repeated()) {
        reflection->AddDouble(message, field, value);
      } else {
        reflection->SetDouble(message, field, value);
      }
      return "";
    }
    case FieldDescriptor::CPPTYPE_UINT32: {
      uint64_t value = 0;
      problem = ReadUnsigned(node, field, std::numeric_limits<uint32_t>::max(), &value);
      if (!problem.empty()) return problem;
      if (field->is_repeated()) {
        reflection->AddUInt32(message, field, static_cast<uint32_t>(value));
      } else {
        reflection->SetUInt32(message, field, static_cast<uint32_t>(value));
      }
      return "";
    }
    case FieldDescriptor::CPPTYPE_UINT64: {
      uint64_t value = 0;
      problem = ReadUnsigned(node, field, std::numeric_limits<uint64_t>::max(), &value);
      if (problem.empty()) reflection->SetUInt64(message, field, value);
      return problem;
    }
    case FieldDescriptor::CPPTYPE_BOOL: {
      if (!IsPlain(node) || (node.Scalar() != "true" && node.Scalar() != "false")) {
        return absl::StrCat("expected true or false, got ", Written(node));
      }
      reflection->SetBool(message, field, node.Scalar() == "true");
      return "";
    }
    case FieldDescriptor::CPPTYPE_STRING: {
      if (!node.IsScalar()) return absl::StrCat("expected a text, got ", Written(node));
      if (field->is_repeated()) {
        reflection->AddString(message, field, node.Scalar());
      } else {
        reflection->SetString(message, field, node.Scalar());
      }
      return "";
    }
    case FieldDescriptor::CPPTYPE_ENUM: {
      const EnumValueDescriptor* value = nullptr;
      problem = ReadEnum(node, field, &value);
      if (problem.empty()) reflection->SetEnum(message, field, value);
      return problem;
    }
    default:
      return absl::StrCat("settings of type ", field->cpp_type_name(), " cannot be read");
  }
}

// What is wrong with the stored value of `field`, or empty.
std::string StoredProblem(const Message& message, const FieldDescriptor* field) {
  const Reflection* reflection = message.GetReflection();
  const bool set =
      field->is_repeated() ? reflection->FieldSize(message, field) > 0 : reflection->HasField(message, field);
  if (!set) return field->options().GetExtension(v1::setting).no_default() ? "" : "is not set";
  if (field->is_repeated()) {
    if (field->cpp_type() == FieldDescriptor::CPPTYPE_STRING) return "";
    for (int i = 0; i < reflection->FieldSize(message, field); ++i) {
      const bool real = field->cpp_type() == FieldDescriptor::CPPTYPE_DOUBLE;
      const std::string problem = RangeProblem(field, real ? reflection->GetRepeatedDouble(message, field, i)
                                                           : reflection->GetRepeatedUInt32(message, field, i));
      if (!problem.empty()) return problem;
    }
    return "";
  }
  switch (field->cpp_type()) {
    case FieldDescriptor::CPPTYPE_DOUBLE:
      return RangeProblem(field, reflection->GetDouble(message, field));
    case FieldDescriptor::CPPTYPE_UINT32:
      return RangeProblem(field, reflection->GetUInt32(message, field));
    case FieldDescriptor::CPPTYPE_UINT64:
      return RangeProblem(field, static_cast<double>(reflection->GetUInt64(message, field)));
    case FieldDescriptor::CPPTYPE_ENUM: {
      const int number = reflection->GetEnumValue(message, field);
      const bool known = number != 0 && field->enum_type()->FindValueByNumber(number) != nullptr;
      return known ? "" : absl::StrCat("has no meaning: value ", number);
    }
    default:
      return "";
  }
}

// As YAML has it.
std::string RealText(double value) {
  if (std::isinf(value)) return value > 0 ? ".inf" : "-.inf";
  return NumberText(value);
}

// Of the settings and sections directly in `section`.
std::vector<std::string> NamesIn(const std::string& section, const std::vector<std::string>& paths) {
  std::vector<std::string> names;
  for (const std::string& path : paths) {
    const size_t dot = path.rfind('.');
    if (dot != std::string::npos && path.substr(0, dot) == section) names.push_back(path.substr(dot + 1));
  }
  return names;
}

}  // namespace

std::string NumberText(double value) {
  constexpr double kPlainUpTo = 1e15;
  if (value == std::floor(value) && std::abs(value) < kPlainUpTo && !std::signbit(value)) {
    return absl::StrCat(static_cast<int64_t>(value));
  }
  char text[32];
  const std::to_chars_result end = std::to_chars(text, text + sizeof(text), value);
  return std::string(text, end.ptr);
}

std::string EnumName(const EnumValueDescriptor* value) {
  // Value 0 is PREFIX_UNSPECIFIED.
  constexpr char kUnspecified[] = "UNSPECIFIED";
  const size_t prefix = value->type()->FindValueByNumber(0)->name().size() - (sizeof(kUnspecified) - 1);
  return absl::AsciiStrToLower(value->name().substr(prefix));
}

std::string ElementText(const Message& message, const FieldDescriptor* field, int index) {
  const Reflection* reflection = message.GetReflection();
  switch (field->cpp_type()) {
    case FieldDescriptor::CPPTYPE_DOUBLE:
      return RealText(reflection->GetRepeatedDouble(message, field, index));
    case FieldDescriptor::CPPTYPE_STRING:
      return reflection->GetRepeatedString(message, field, index);
    default:
      return absl::StrCat(reflection->GetRepeatedUInt32(message, field, index));
  }
}

std::string ValueText(const Message& message, const FieldDescriptor* field) {
  const Reflection* reflection = message.GetReflection();
  if (field->is_repeated()) {
    std::vector<std::string> values;
    for (int i = 0; i < reflection->FieldSize(message, field); ++i) values.push_back(ElementText(message, field, i));
    return absl::StrCat("[", absl::StrJoin(values, ", "), "]");
  }
  switch (field->cpp_type()) {
    case FieldDescriptor::CPPTYPE_DOUBLE:
      return RealText(reflection->GetDouble(message, field));
    case FieldDescriptor::CPPTYPE_UINT32:
      return absl::StrCat(reflection->GetUInt32(message, field));
    case FieldDescriptor::CPPTYPE_UINT64:
      return absl::StrCat(reflection->GetUInt64(message, field));
    case FieldDescriptor::CPPTYPE_BOOL:
      return reflection->GetBool(message, field) ? "true" : "false";
    case FieldDescriptor::CPPTYPE_ENUM:
      return EnumName(reflection->GetEnum(message, field));
    default:
      return reflection->GetString(message, field);
  }
}

std::string UnknownKey(const std::string& path, const Descriptor* root) {
  const Descriptor* const own = root == nullptr ? v1::RunConfig::descriptor() : root;
  const std::string section = path.substr(0, path.find('.'));
  for (const auto& [other, verb] :
       {std::pair{v1::RunConfig::descriptor(), "train"}, {v1::FitConfig::descriptor(), "fit"}}) {
    if (own->FindFieldByName(section) != nullptr || other->FindFieldByName(section) == nullptr) continue;
    return absl::StrCat("unknown key ", Quoted(path), "; '", section, "' is a key of `skein ", verb, "`");
  }
  const std::vector<std::string> paths = SettingPathsOf(own);
  NearestSetting nearest;
  if (root == nullptr) {
    nearest = FindNearestSetting(path);
  } else {
    const NearestName found = FindNearestName(path, paths, '.');
    nearest = {paths[found.index], found.edits};
  }
  const std::string message = absl::StrCat("unknown key ", Quoted(path), "; ");
  const size_t dot = path.rfind('.');
  if (dot != std::string::npos && !IsSimilar(path.substr(dot + 1), {0, nearest.edits})) {
    const std::vector<std::string> names = NamesIn(path.substr(0, dot), paths);
    if (!names.empty()) return absl::StrCat(message, path.substr(0, dot), " has ", absl::StrJoin(names, ", "));
  }
  return absl::StrCat(message, "the nearest is '", nearest.path, "'");
}

bool IsChosen(const Message& message, const FieldDescriptor* field) {
  const OneofDescriptor* const choice = field->real_containing_oneof();
  if (choice == nullptr) return true;
  const FieldDescriptor* const chosen = message.GetReflection()->GetOneofFieldDescriptor(message, choice);
  return field == (chosen == nullptr ? choice->field(0) : chosen);
}

std::string ChoiceProblem(const Message& message, const FieldDescriptor* field) {
  const OneofDescriptor* const choice = field->real_containing_oneof();
  if (choice == nullptr) return "";
  const FieldDescriptor* const chosen = message.GetReflection()->GetOneofFieldDescriptor(message, choice);
  if (chosen == nullptr || chosen == field) return "";
  return absl::StrCat("'", field->name(), "' is given, but the ", choice->name(), " of this run is '", chosen->name(),
                      "'; a run has one");
}

absl::Status SetField(const YAML::Node& node, const Source& source, const std::string& path,
                      const FieldDescriptor* field, Message* message) {
  const Reflection* reflection = message->GetReflection();
  if (field->message_type() == v1::PhaseConfig::descriptor()) {
    return SetPhases(node, source, google::protobuf::DynamicCastToGenerated<v1::RunConfig>(message));
  }
  if (field->message_type() == v1::EnvTransform::descriptor()) {
    return SetTransforms(node, source, path, google::protobuf::DynamicCastToGenerated<v1::EnvConfig>(message));
  }
  if (field->message_type() != nullptr) {
    return SetMessage(node, source, path, reflection->MutableMessage(message, field));
  }
  const auto error = [&](const YAML::Node& at, const std::string& problem) {
    return source.Error(at.Mark(), absl::StrCat(path, ": ", problem));
  };
  if (!field->is_repeated()) {
    const std::string problem = SetScalar(node, field, message);
    return problem.empty() ? absl::OkStatus() : error(node, problem);
  }
  const bool texts = field->cpp_type() == FieldDescriptor::CPPTYPE_STRING;
  if (texts && node.IsScalar()) {  // A list of one.
    reflection->ClearField(message, field);
    reflection->AddString(message, field, node.Scalar());
    return absl::OkStatus();
  }
  if (!node.IsSequence()) {
    const char* const example = texts ? "[3, 8-16]" : "[64, 64]";
    return error(node, absl::StrCat("expected a list such as ", example, ", got ", Written(node)));
  }
  if (node.size() == 0 && !texts) return error(node, "expected at least one value in the list");
  reflection->ClearField(message, field);
  for (const YAML::Node& element : node) {
    const std::string problem = SetScalar(element, field, message);
    if (!problem.empty()) return error(element, problem);
  }
  return absl::OkStatus();
}

absl::Status SetMessage(const YAML::Node& node, const Source& source, const std::string& path, Message* message) {
  if (node.IsNull()) return absl::OkStatus();  // A section in which all is commented out.
  if (!node.IsMap()) {
    const std::string place = path.empty() ? "the configuration" : path;
    return source.Error(node.Mark(), absl::StrCat(place, ": expected keys and values, got ", Written(node)));
  }
  std::set<std::string> seen;
  for (const auto& entry : node) {
    const YAML::Node& key = entry.first;
    if (!key.IsScalar()) return source.Error(key.Mark(), absl::StrCat("expected a key, got ", Written(key)));
    const std::string key_path = JoinPath(path, key.Scalar());
    const FieldDescriptor* field = message->GetDescriptor()->FindFieldByName(key.Scalar());
    if (field == nullptr) return source.Error(key.Mark(), UnknownKey(key_path, source.root));
    if (const std::string problem = ChoiceProblem(*message, field); !problem.empty()) {
      return source.Error(key.Mark(), problem);
    }
    if (!seen.insert(key.Scalar()).second) {
      return source.Error(key.Mark(), absl::StrCat("key ", Quoted(key_path), " is given twice"));
    }
    if (absl::Status status = SetField(entry.second, source, key_path, field, message); !status.ok()) return status;
  }
  return absl::OkStatus();
}

absl::Status CheckSettings(const Message& message, const std::string& path) {
  const Descriptor* descriptor = message.GetDescriptor();
  for (int i = 0; i < descriptor->field_count(); ++i) {
    const FieldDescriptor* field = descriptor->field(i);
    const std::string field_path = JoinPath(path, field->name());
    if (field->message_type() != nullptr) {
      if (field->is_repeated() || !IsChosen(message, field)) continue;
      const Message& section = message.GetReflection()->GetMessage(message, field);
      if (absl::Status status = CheckSettings(section, field_path); !status.ok()) return status;
      continue;
    }
    const std::string problem = StoredProblem(message, field);
    if (!problem.empty()) return absl::InvalidArgumentError(absl::StrCat(field_path, " ", problem));
  }
  return absl::OkStatus();
}

}  // namespace skein::config_reflection
