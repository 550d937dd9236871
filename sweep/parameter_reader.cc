// SPDX-License-Identifier: Apache-2.0
#include "sweep/parameter_reader.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/config/config_reflection.h"
#include "base/config/nearest_name.h"
#include "base/process/message_text.h"
#include "sweep/settings.h"

namespace skein {
namespace {

using config_reflection::Source;

constexpr double kMostDouble = 9007199254740992.0;  // 2^53: whole numbers up to there are exact.

class Reader {
 public:
  Reader(const Space& earlier, const v1::RunConfig& base, const std::string& source)
      : earlier_(earlier), base_(base), source_{source, true} {}

  absl::StatusOr<Parameter> Read(const std::string& path, const YAML::Node& key, const YAML::Node& node) {
    Parameter parameter;
    parameter.path = path;
    if (node.IsSequence()) {  // In short.
      if (absl::Status status = ReadChoices(key, node, &parameter); !status.ok()) return status;
    } else if (!node.IsMap()) {
      if (absl::Status known = Try(path, key, node); !known.ok()) return known;
      return Error(node, absl::StrCat(path, ": expected {choice: [...]}, {uniform: [low, high]}, {log_uniform: ",
                                      "[low, high]} or {integer: [low, high]}"));
    } else {
      int kinds = 0;
      for (const auto& entry : node) {
        if (!entry.first.IsScalar()) return Error(entry.first, "expected a key");
        if (absl::Status status = ReadKey(key, entry.first.Scalar(), entry.first, entry.second, &parameter, &kinds);
            !status.ok()) {
          return status;
        }
      }
      if (kinds != 1) return Error(node, absl::StrCat(path, ": expected one of choice, uniform, log_uniform, integer"));
    }
    const double values = parameter.high - parameter.low;
    if (parameter.kind == Parameter::Kind::kInteger && static_cast<double>(parameter.step) > std::max(values, 1.0)) {
      return Error(node, absl::StrCat(path, ": a step of ", parameter.step, " does not fit between the bounds"));
    }
    if (parameter.kind == Parameter::Kind::kReal) {
      // A value with a fraction, between the bounds.
      const YAML::Node between(config_reflection::NumberText(parameter.low + values / std::sqrt(7.0)));
      if (!Try(path, key, between).ok()) {
        return Error(node, absl::StrCat(path, ": it does not take fractions; write {integer: [low, high]}"));
      }
    }
    if (parameter.log && parameter.step != 1)
      return Error(node, absl::StrCat(path, ": step and log exclude each other"));
    return parameter;
  }

 private:
  absl::Status Error(const YAML::Node& node, const std::string& message) const {
    return source_.Error(node.Mark(), message);
  }

  // Whether the setting takes this value.
  absl::Status Try(const std::string& path, const YAML::Node& key, const YAML::Node& value) const {
    v1::RunConfig config = base_;
    return SetSetting(key, path, value, source_.name, &config);
  }

  absl::Status ReadKey(const YAML::Node& path, const std::string& key, const YAML::Node& at, const YAML::Node& value,
                       Parameter* parameter, int* kinds) {
    const std::string& name = parameter->path;
    if (key == "choice") {
      ++*kinds;
      return ReadChoices(path, value, parameter);
    }
    if (key == "uniform" || key == "log_uniform" || key == "integer") {
      ++*kinds;
      parameter->kind = key == "integer" ? Parameter::Kind::kInteger : Parameter::Kind::kReal;
      parameter->log = parameter->log || key == "log_uniform";
      return ReadBounds(path, value, parameter);
    }
    if (key == "when") return ReadCondition(value, parameter);
    if (key == "log") {
      if (!value.IsScalar() || (value.Scalar() != "true" && value.Scalar() != "false")) {
        return Error(value, absl::StrCat(name, ".log: expected true or false"));
      }
      parameter->log = parameter->log || value.Scalar() == "true";
      return absl::OkStatus();
    }
    if (key == "step" || key == "points") {
      uint32_t number = 0;
      if (!value.IsScalar() || !absl::SimpleAtoi(value.Scalar(), &number) || number < (key == "step" ? 1u : 2u)) {
        return Error(value,
                     absl::StrCat(name, ".", key, ": expected a whole number of at least ", key == "step" ? 1 : 2));
      }
      if (key == "step") parameter->step = number;
      if (key == "points") parameter->points = number;
      return absl::OkStatus();
    }
    return Error(at,
                 UnknownKeyOf(key, {"choice", "uniform", "log_uniform", "integer", "when", "log", "step", "points"}));
  }

  absl::Status ReadChoices(const YAML::Node& key, const YAML::Node& node, Parameter* parameter) {
    if (absl::Status known = CheckPath(parameter->path, key); !known.ok()) return known;
    if (!node.IsSequence() || node.size() == 0) {
      return Error(node, absl::StrCat(parameter->path, ": expected a list of at least one value"));
    }
    for (const YAML::Node& value : node) {
      if (absl::Status status = Try(parameter->path, key, value); !status.ok()) return status;
      const std::string text = TextOf(value);
      if (std::count(parameter->choices.begin(), parameter->choices.end(), text) > 0) {
        return Error(value, absl::StrCat(parameter->path, ": ", Quoted(text), " is given twice"));
      }
      parameter->choices.push_back(text);
    }
    return absl::OkStatus();
  }

  static std::string TextOf(const YAML::Node& value) {
    if (!value.IsSequence()) return value.Scalar();
    std::vector<std::string> elements;
    for (const YAML::Node& element : value) elements.push_back(element.Scalar());
    return absl::StrCat("[", absl::StrJoin(elements, ", "), "]");
  }

  // A name that is no setting is said before anything about its values.
  absl::Status CheckPath(const std::string& path, const YAML::Node& key) const {
    const std::vector<std::string>& known = SettingPaths();
    if (std::count(known.begin(), known.end(), path) > 0) return absl::OkStatus();
    return Error(key, config_reflection::UnknownKey(path));
  }

  absl::Status ReadBounds(const YAML::Node& key, const YAML::Node& node, Parameter* parameter) {
    const std::string& path = parameter->path;
    if (absl::Status known = CheckPath(path, key); !known.ok()) return known;
    if (!node.IsSequence() || node.size() != 2) return Error(node, absl::StrCat(path, ": expected [low, high]"));
    double bounds[2];
    for (size_t i = 0; i < 2; ++i) {
      if (absl::Status status = Try(path, key, node[i]); !status.ok()) return status;
      if (!node[i].IsScalar() || !absl::SimpleAtod(node[i].Scalar(), &bounds[i])) {
        return Error(node[i], absl::StrCat(path, ": expected a number"));
      }
      const bool whole =
          bounds[i] == static_cast<double>(static_cast<int64_t>(std::clamp(bounds[i], -kMostDouble, kMostDouble)));
      if (parameter->kind == Parameter::Kind::kInteger && !whole) {
        return Error(node[i], absl::StrCat(path, ": expected a whole number"));
      }
    }
    if (!(bounds[0] < bounds[1])) {
      return Error(node, absl::StrCat(path, ": the lower bound ", config_reflection::NumberText(bounds[0]),
                                      " is not below the upper one, ", config_reflection::NumberText(bounds[1])));
    }
    if (parameter->log && bounds[0] <= 0)
      return Error(node[0], absl::StrCat(path, ": a logarithm needs bounds above 0"));
    parameter->low = bounds[0];
    parameter->high = bounds[1];
    return absl::OkStatus();
  }

  absl::Status ReadCondition(const YAML::Node& node, Parameter* parameter) {
    if (!node.IsMap() || node.size() != 1) {
      return Error(
          node, absl::StrCat(parameter->path, ".when: expected one setting, such as {ppo.lr_schedule: kl_adaptive}"));
    }
    const YAML::Node key = node.begin()->first, values = node.begin()->second;
    const std::string on = key.Scalar();
    const std::vector<Parameter>& earlier = earlier_.parameters;
    const auto found =
        std::find_if(earlier.begin(), earlier.end(), [&](const Parameter& one) { return one.path == on; });
    if (found == earlier.end()) {
      return Error(key, absl::StrCat(parameter->path, ".when: ", Quoted(on), " is not in the space before it"));
    }
    if (found->kind != Parameter::Kind::kChoice) {
      return Error(key, absl::StrCat(parameter->path, ".when: ", on, " has no list of choices"));
    }
    Parameter::Condition condition;
    condition.parameter = static_cast<size_t>(found - earlier.begin());
    const auto add = [&](const YAML::Node& value) {
      const auto choice = std::find(found->choices.begin(), found->choices.end(), TextOf(value));
      if (choice == found->choices.end()) {
        return Error(value, absl::StrCat(parameter->path, ".when: ", Quoted(TextOf(value)), " is no choice of ", on,
                                         ": ", absl::StrJoin(found->choices, ", ")));
      }
      condition.values.push_back(static_cast<double>(choice - found->choices.begin()));
      return absl::OkStatus();
    };
    if (values.IsSequence()) {
      for (const YAML::Node& value : values) {
        if (absl::Status status = add(value); !status.ok()) return status;
      }
    } else if (absl::Status status = add(values); !status.ok()) {
      return status;
    }
    parameter->when = std::move(condition);
    return absl::OkStatus();
  }

  const Space& earlier_;
  const v1::RunConfig& base_;
  const Source source_;
};

}  // namespace

absl::StatusOr<Parameter> ReadParameter(const std::string& path, const YAML::Node& key, const YAML::Node& node,
                                        const Space& earlier, const v1::RunConfig& base, const std::string& source) {
  return Reader(earlier, base, source).Read(path, key, node);
}

std::string UnknownKeyOf(const std::string& key, const std::vector<std::string>& known) {
  const NearestName nearest = FindNearestName(key, known, '.');
  return absl::StrCat("unknown key ", Quoted(key), "; the nearest is '", known[nearest.index], "'");
}

}  // namespace skein
