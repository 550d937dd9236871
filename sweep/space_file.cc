// SPDX-License-Identifier: Apache-2.0
#include "sweep/space_file.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <set>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/string_view.h"
#include "base/config/config.h"
#include "base/config/config_reflection.h"
#include "base/config/nearest_name.h"
#include "base/config/resource_rules.h"
#include "base/process/message_text.h"
#include "nlohmann/json.hpp"
#include "sweep/parameter_reader.h"
#include "sweep/settings.h"
#include "xxhash.h"

namespace skein {
namespace {

using config_reflection::Source;
using google::protobuf::FieldDescriptor;
using google::protobuf::Message;

// What the sweep decides itself.
constexpr std::pair<const char*, const char*> kNotVaried[] = {
    {"name", "the sweep names its runs"},
    {"seed", "the sweep chooses the seeds: tuning_seed, seeds_per_trial"},
    {"total_steps", "trials are compared at the same steps"},
    {"checkpoint.keep", "it does not change what is learned"},
    {"checkpoint.interval_steps", "it does not change what is learned"}};

constexpr size_t kMostName = 200;  // Bytes.

bool IsSectionOf(const FieldDescriptor* field) { return field->message_type() != nullptr; }

void SetDefaults(Message* message) {
  const auto* const reflection = message->GetReflection();
  for (int i = 0; i < message->GetDescriptor()->field_count(); ++i) {
    const FieldDescriptor* const field = message->GetDescriptor()->field(i);
    if (IsSectionOf(field)) {
      SetDefaults(reflection->MutableMessage(message, field));
    } else if (!reflection->HasField(*message, field) && !field->options().GetExtension(v1::setting).no_default()) {
      const std::string& value = field->options().GetExtension(v1::setting).default_value();
      if (field->cpp_type() == FieldDescriptor::CPPTYPE_STRING) {
        reflection->SetString(message, field, value);
      } else if (!config_reflection::SetField(YAML::Node(value), {"sweep.proto", false}, field->name(), field, message)
                      .ok()) {
        std::abort();  // A default in sweep.proto is wrong.
      }
    }
  }
}

// A scalar as JSON: true, 3, 0.5, or a text.
nlohmann::json JsonOf(const YAML::Node& node) {
  const std::string& text = node.Scalar();
  if (node.Tag() != "!") {
    int64_t whole = 0;
    double number = 0;
    if (text == "true" || text == "false") return text == "true";
    if (text == "null" || text == "~") return nullptr;
    if (absl::SimpleAtoi(text, &whole)) return whole;
    if (absl::SimpleAtod(text, &number)) return number;
  }
  return text;
}

// The name of a sampler as the helper understands it: "CmaEsSampler" and "cma-es" are "cmaes".
std::string PlainName(const std::string& kind) {
  std::string name = absl::AsciiStrToLower(absl::StrReplaceAll(kind, {{"-", ""}, {"_", ""}}));
  constexpr absl::string_view kEnd = "sampler";
  if (absl::EndsWith(name, kEnd)) name.resize(name.size() - kEnd.size());
  return name;
}

class Reader {
 public:
  Reader(const std::string& path, const v1::RunConfig& base, const std::vector<std::string>& metrics)
      : source_{path, true}, base_(base), metrics_(metrics) {}

  absl::StatusOr<SweepFile> Read(const std::string& text) {
    const auto root = config_reflection::ParseYaml(text, source_);
    if (!root.ok()) return root.status();
    if (!root->IsMap()) return Error(*root, "expected keys and values, such as space:");
    root_ = *root;
    if (absl::Status status = ReadSection(*root, "", &file_.config); !status.ok()) return status;
    SetDefaults(&file_.config);
    if (file_.config.name().empty()) file_.config.set_name(std::filesystem::path(source_.name).stem().string());
    if (file_.space.parameters.empty()) return Error(*root, "'space' is missing: which settings are to be varied");
    if (absl::Status status = CheckTogether(); !status.ok()) return status;
    return std::move(file_);
  }

 private:
  absl::Status Error(const YAML::Node& node, const std::string& message) const {
    return source_.Error(node.Mark(), message);
  }

  // The message's fields; of the root also the space and the constraints.
  absl::Status ReadSection(const YAML::Node& node, const std::string& path, Message* message) {
    if (node.IsNull()) return absl::OkStatus();
    if (!node.IsMap()) return Error(node, absl::StrCat(path, ": expected keys and values"));
    std::set<std::string> seen;
    for (const auto& entry : node) {
      if (!entry.first.IsScalar()) return Error(entry.first, "expected a key");
      const std::string key = entry.first.Scalar();
      const std::string key_path = config_reflection::JoinPath(path, key);
      if (!seen.insert(key).second)
        return Error(entry.first, absl::StrCat("key ", Quoted(key_path), " is given twice"));
      absl::Status status;
      const FieldDescriptor* const field = message->GetDescriptor()->FindFieldByName(key);
      if (path.empty() && key == "space") {
        status = ReadSpace(entry.second);
      } else if (path.empty() && key == "constraints") {
        constraints_ = entry.second;
      } else if (key_path == "sampler.options") {
        status = ReadOptions(entry.second);
      } else if (field == nullptr) {
        std::vector<std::string> known;
        for (int i = 0; i < message->GetDescriptor()->field_count(); ++i) {
          known.push_back(message->GetDescriptor()->field(i)->name());
        }
        if (path.empty()) known.insert(known.end(), {"space", "constraints"});
        status = Error(entry.first, UnknownKeyOf(key, known));
      } else if (IsSectionOf(field)) {
        status = ReadSection(entry.second, key_path, message->GetReflection()->MutableMessage(message, field));
      } else {
        status = config_reflection::SetField(entry.second, source_, key_path, field, message);
      }
      if (!status.ok()) return status;
    }
    return absl::OkStatus();
  }

  absl::Status ReadOptions(const YAML::Node& node) {
    if (!node.IsMap()) return Error(node, "sampler.options: expected keys and values");
    nlohmann::json options = nlohmann::json::object();
    for (const auto& entry : node) {
      if (!entry.first.IsScalar() || !entry.second.IsScalar()) {
        return Error(entry.first, "sampler.options: expected a number, a text, true or false for each key");
      }
      options[entry.first.Scalar()] = JsonOf(entry.second);
    }
    file_.config.mutable_sampler()->set_options(options.dump());
    return absl::OkStatus();
  }

  absl::Status ReadSpace(const YAML::Node& node) {
    if (!node.IsMap()) return Error(node, "space: expected settings, such as ppo.lr: {log_uniform: [1e-4, 1e-2]}");
    std::set<std::string> seen;
    for (const auto& entry : node) {
      if (!entry.first.IsScalar()) return Error(entry.first, "space: expected a setting's path");
      const std::string path = entry.first.Scalar();
      if (!seen.insert(path).second) return Error(entry.first, absl::StrCat(Quoted(path), " is in the space twice"));
      for (const auto& [name, why] : kNotVaried) {
        if (path == name) return Error(entry.first, absl::StrCat(path, ": a sweep cannot vary it; ", why));
      }
      auto parameter = ReadParameter(path, entry.first, entry.second, file_.space, base_, source_.name);
      if (!parameter.ok()) return parameter.status();
      file_.space.parameters.push_back(*std::move(parameter));
      nodes_.push_back(entry.first);
    }
    return absl::OkStatus();
  }

  absl::Status ReadConstraints() {
    if (!constraints_ || constraints_.IsNull()) return absl::OkStatus();
    if (!constraints_.IsSequence()) return Error(constraints_, "constraints: expected a list of texts");
    for (const YAML::Node& node : constraints_) {
      if (!node.IsScalar()) return Error(node, "constraints: expected a text such as \"ppo.epochs * 2 <= 20\"");
      size_t column = 0;
      auto constraint = Constraint::Parse(node.Scalar(), &column);
      if (!constraint.ok()) {
        YAML::Mark mark = node.Mark();
        mark.column += static_cast<int>(column) + (node.Tag() == "!" ? 1 : 0);  // After the quotation mark.
        return source_.Error(mark, absl::StrCat("constraints: ", std::string(constraint.status().message())));
      }
      if (const std::string word = constraint->NotANumber([&](const auto& path) { return SomeValue(path); });
          !word.empty()) {
        return Error(node, absl::StrCat("constraints: ", Quoted(word), " is no number, in ", Quoted(node.Scalar())));
      }
      file_.space.constraints.push_back(*std::move(constraint));
    }
    return absl::OkStatus();
  }

  // A value of the setting that the constraints may meet; of choices a number, if one is.
  std::string SomeValue(const std::string& path) const {
    for (const Parameter& one : file_.space.parameters) {
      if (one.path != path) continue;
      if (one.kind != Parameter::Kind::kChoice) return "0";
      double number = 0;
      const auto found = std::find_if(one.choices.begin(), one.choices.end(),
                                      [&](const std::string& choice) { return absl::SimpleAtod(choice, &number); });
      return found == one.choices.end() ? one.choices[0] : *found;
    }
    return SettingText(base_, path);
  }

  // Where a setting of the sweep is written; the root if it is not.
  YAML::Node At(const std::string& section, const std::string& key) const {
    const YAML::Node inner = section.empty() ? root_ : root_[section];
    return inner && inner.IsMap() && inner[key] ? inner[key] : root_;
  }

  std::string PlaceOf(const YAML::Node& node) const {
    const YAML::Mark mark = node.Mark();
    return absl::StrCat(source_.name, ":", mark.line + 1, ":", mark.column + 1);
  }

  absl::Status CheckMetric() const {
    const std::string& metric = file_.config.metric();
    if (absl::StartsWith(metric, "callback.")) {
      const auto varies = [](const Parameter& one) { return one.path == "callbacks.python"; };
      const std::vector<Parameter>& all = file_.space.parameters;
      if (!base_.callbacks().python().empty() || std::any_of(all.begin(), all.end(), varies)) return absl::OkStatus();
      return Error(At("", "metric"), absl::StrCat("metric: ", metric, " needs a callback: callbacks.python is empty"));
    }
    const bool known = std::count(metrics_.begin(), metrics_.end(), metric) > 0 || absl::StartsWith(metric, "update.");
    if (!known) {
      const NearestName nearest = FindNearestName(metric, metrics_, '.');
      return Error(At("", "metric"), absl::StrCat("metric: trainings have no ", Quoted(metric), "; the nearest is '",
                                                  metrics_[nearest.index], "'"));
    }
    if (absl::StartsWith(metric, "eval.") && base_.eval().episodes() == 0) {
      return Error(At("", "metric"), absl::StrCat("metric: ", metric, " needs eval.episodes of more than 0"));
    }
    const v1::SweepSchedule kind = file_.config.scheduler().kind();
    if (kind == v1::SWEEP_SCHEDULE_NONE || !absl::StartsWith(metric, "eval.")) return absl::OkStatus();
    return Error(At("", "metric"),
                 absl::StrCat("metric: ", metric, " is known at the end only, and the scheduler judges ",
                              "before; take episode_return_mean, or scheduler kind none"));
  }

  absl::Status CheckTogether() {
    if (absl::Status status = ReadConstraints(); !status.ok()) return status;
    const v1::SweepConfig& config = file_.config;
    const std::string& kind = config.sampler().kind();
    const bool ours = kind == "grid" || kind == "random";
    for (size_t i = 0; i < nodes_.size(); ++i) {
      const Parameter& parameter = file_.space.parameters[i];
      if (kind == "grid" && parameter.kind == Parameter::Kind::kReal && parameter.points == 0) {
        return Error(nodes_[i], absl::StrCat(parameter.path, ": a grid needs points: N, or choices"));
      }
      if ((PlainName(kind) == "gp" || PlainName(kind) == "cmaes") && parameter.when) {
        return Error(nodes_[i],
                     absl::StrCat(parameter.path, ": sampler ", kind, " cannot do a setting with a condition ",
                                  "(when); tpe, random and grid can"));
      }
    }
    if (ours && !config.sampler().options().empty()) {
      return Error(At("sampler", "options"), absl::StrCat("sampler.options: ", kind, " is Skein's own and has none"));
    }
    file_.sampler_place = PlaceOf(At("sampler", "kind"));
    file_.metric_place = PlaceOf(At("", "metric"));
    if (!ours && config.scheduler().kind() == v1::SWEEP_SCHEDULE_POPULATION) {
      return Error(At("sampler", "kind"),
                   absl::StrCat("sampler.kind: ", kind, " does not know where copies come from; ",
                                "scheduler population takes grid or random"));
    }
    if (absl::Status status = CheckMetric(); !status.ok()) return status;
    if (absl::Status status = CheckShare(config.resources(), "resources"); !status.ok()) {
      return Error(At("", "resources"), std::string(status.message()));
    }
    const bool hyperband = config.scheduler().kind() == v1::SWEEP_SCHEDULE_HYPERBAND;
    const bool population = config.scheduler().kind() == v1::SWEEP_SCHEDULE_POPULATION;
    if (config.max_trials() == 0 && kind != "grid" && !hyperband && !population) {
      return Error(At("", "max_trials"), absl::StrCat("max_trials: sampler ", kind, " needs a number"));
    }
    const uint64_t tuning = config.tuning_seed(), test = config.test_seed();
    const uint64_t seeds = uint64_t{config.seeds_per_trial()} * (population ? config.scheduler().population() : 1);
    if (tuning < test + config.test_seeds() && test < tuning + seeds) {
      return Error(At("", "test_seed"),
                   absl::StrCat("test_seed: seeds ", test, " to ", test + config.test_seeds() - 1,
                                " of the test are among those of the search, ", tuning, " to ", tuning + seeds - 1));
    }
    const uint64_t least = config.scheduler().min_steps(), total = base_.total_steps();
    if (least >= total) {
      return Error(At("scheduler", "min_steps"),
                   absl::StrCat("scheduler.min_steps: ", least, " is not below total_steps, ", total));
    }
    if (config.scheduler().interval_steps() >= total) {
      return Error(At("scheduler", "interval_steps"),
                   absl::StrCat("scheduler.interval_steps: ", config.scheduler().interval_steps(),
                                " is not below total_steps, ", total));
    }
    const absl::Status named = CheckSweepName(config.name());
    return named.ok() ? named : Error(At("", "name"), std::string(named.message()));
  }

  const Source source_;
  const v1::RunConfig& base_;
  const std::vector<std::string>& metrics_;
  SweepFile file_;
  YAML::Node root_, constraints_;
  std::vector<YAML::Node> nodes_;  // Of the parameters' paths.
};

std::string DescribeParameter(const Space& space, const Parameter& parameter) {
  std::string text = parameter.path + ":";
  if (parameter.kind == Parameter::Kind::kChoice) {
    absl::StrAppend(&text, " choice [", absl::StrJoin(parameter.choices, ", "), "]");
  } else {
    absl::StrAppend(&text, parameter.kind == Parameter::Kind::kReal ? " real [" : " integer [",
                    config_reflection::NumberText(parameter.low), ", ", config_reflection::NumberText(parameter.high),
                    "]", parameter.log ? " log" : "", " step ", parameter.step, " points ", parameter.points);
  }
  if (parameter.when) {
    const Parameter& on = space.parameters[parameter.when->parameter];
    absl::StrAppend(&text, " when ", on.path);
    for (double value : parameter.when->values) absl::StrAppend(&text, " ", ValueText(on, value));
  }
  return text;
}

}  // namespace

absl::StatusOr<SweepFile> ReadSweepFile(const std::string& text, const std::string& path, const v1::RunConfig& base,
                                        const std::vector<std::string>& metrics) {
  return Reader(path, base, metrics).Read(text);
}

absl::Status CheckSweepName(const std::string& name) {
  const bool good = !name.empty() && name.size() <= kMostName && name[0] != '-' && name != "." && name != ".." &&
                    std::all_of(name.begin(), name.end(), [](unsigned char c) {
                      return absl::ascii_isalnum(c) || c == '.' || c == '_' || c == '-';
                    });
  if (good) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("name: ", Quoted(name), " is no name of a folder: at most ", kMostName,
                                                 " letters, digits, '.', '_' and '-', which must not be first"));
}

std::string Identity(const SweepFile& file, const v1::RunConfig& base) {
  std::vector<std::string> lines;
  for (const Parameter& one : file.space.parameters) lines.push_back(DescribeParameter(file.space, one));
  for (const Constraint& one : file.space.constraints) lines.push_back("constraint: " + one.text());
  const v1::SweepConfig& config = file.config;
  const v1::SweepScheduler& scheduler = config.scheduler();
  // The text of a goal tells journals of today from those that once had minimized results with the wrong sign.
  const bool minimize = config.goal() == v1::SWEEP_GOAL_MINIMIZE;
  lines.push_back(absl::StrCat("metric: ", config.metric(), minimize ? " minimize" : " 1"));
  lines.push_back(
      absl::StrCat("sampler: ", config.sampler().kind(), " ", config.sampler().options(), " seed ", config.seed()));
  lines.push_back(absl::StrCat("scheduler: ", scheduler.ShortDebugString()));
  lines.push_back(absl::StrCat("seeds: ", config.seeds_per_trial(), " from ", config.tuning_seed()));
  v1::RunConfig run = base;
  run.clear_name();
  run.clear_seed();
  run.clear_checkpoint();
  run.mutable_env()->mutable_mujoco()->clear_xml_digest();  // Each trial has its own.
  run.clear_logging();
  run.clear_eval();
  run.clear_coordinator();
  run.clear_resources();  // They do not change what is computed.
  const std::string yaml = ToYaml(run);
  lines.push_back(
      absl::StrCat("base configuration: ", absl::Hex(XXH3_64bits(yaml.data(), yaml.size()), absl::kZeroPad16)));
  return absl::StrJoin(lines, "\n");
}

}  // namespace skein
