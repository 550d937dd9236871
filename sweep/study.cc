// SPDX-License-Identifier: Apache-2.0
#include "sweep/study.h"

#include <cmath>
#include <limits>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"

namespace skein {
namespace {

// Optuna's JournalOperation.
enum Operation : int {
  kCreateStudy = 0,
  kSetStudyUserAttribute = 2,
  kCreateTrial = 4,
  kSetTrialStateValues = 6,
  kSetTrialIntermediateValue = 7,
  kSetTrialUserAttribute = 8,
};

constexpr char kWriter[] = "skein";
constexpr double kNoValue = std::numeric_limits<double>::quiet_NaN();

// Local time, as Optuna writes it.
std::string Now() { return absl::FormatTime("%Y-%m-%dT%H:%M:%E6S", absl::Now(), absl::LocalTimeZone()); }

// Higher is better: without a value for one of its seeds a trial is the worst.
double MeanOf(const std::vector<double>& values) {
  double sum = 0;
  for (double value : values) {
    if (std::isnan(value)) return -std::numeric_limits<double>::infinity();
    sum += value;
  }
  return sum / static_cast<double>(values.size());
}

absl::Status Lacks(const nlohmann::json& record) {
  return absl::DataLossError(absl::StrCat("the journal has a record that lacks something: ", record.dump()));
}

}  // namespace

nlohmann::json ChoiceValue(const std::string& text) {
  int64_t whole = 0;
  double number = 0;
  if (text == "true" || text == "false") return text == "true";
  if (absl::SimpleAtoi(text, &whole)) return whole;
  if (absl::SimpleAtod(text, &number)) return number;
  return text;
}

std::string DistributionText(const Parameter& parameter) {
  nlohmann::ordered_json distribution;
  switch (parameter.kind) {
    case Parameter::Kind::kChoice: {
      nlohmann::ordered_json choices = nlohmann::ordered_json::array();
      for (const std::string& one : parameter.choices) choices.emplace_back(nlohmann::ordered_json(ChoiceValue(one)));
      distribution = {{"name", "CategoricalDistribution"}, {"attributes", {{"choices", choices}}}};
      break;
    }
    case Parameter::Kind::kReal:
      distribution = {{"name", "FloatDistribution"},
                      {"attributes",
                       {{"step", nullptr}, {"low", parameter.low}, {"high", parameter.high}, {"log", parameter.log}}}};
      break;
    case Parameter::Kind::kInteger: {
      // Optuna wants an upper bound that its steps come to.
      const auto low = static_cast<int64_t>(parameter.low), high = static_cast<int64_t>(parameter.high);
      distribution = {{"name", "IntDistribution"},
                      {"attributes",
                       {{"log", parameter.log},
                        {"step", parameter.step},
                        {"low", low},
                        {"high", high - (high - low) % parameter.step}}}};
      break;
    }
  }
  return distribution.dump();
}

Study::Json Study::Record(int operation) const { return {{"op_code", operation}, {"worker_id", kWriter}}; }

Study::Json Study::OfTrial(int operation, uint32_t number) const {
  Json record = Record(operation);
  record["trial_id"] = ids_[number];
  return record;
}

Study::Json Study::CreateStudy(const std::string& name) const {
  Json record = Record(kCreateStudy);
  record["study_name"] = name;
  record["directions"] = Json::array({minimize_ ? 1 : 2});
  return record;
}

Study::Json Study::SetAttribute(const std::string& key, const Json& value) const {
  Json record = Record(kSetStudyUserAttribute);
  record["study_id"] = id_;
  record["user_attr"] = Json::object({{key, value}});
  return record;
}

bool Study::IsOwn(const Json& record) {
  const auto writer = record.find("worker_id");
  return writer != record.end() && *writer == kWriter;
}

Study::Json Study::CreateTrial(const Point& point, uint32_t rung, uint32_t group, const Trial::Origin* origin,
                               const std::string& refused) const {
  Json record = Record(kCreateTrial);
  record["study_id"] = id_;
  record["datetime_start"] = Now();
  record["state"] = static_cast<int>(refused.empty() ? TrialState::kRunning : TrialState::kPruned);
  if (!refused.empty()) record["datetime_complete"] = record["datetime_start"];
  record["value"] = nullptr;
  record["values"] = nullptr;
  Json distributions = Json::object(), params = Json::object();
  for (size_t i = 0; i < point.size(); ++i) {
    if (!point[i]) continue;
    const Parameter& parameter = space_->parameters[i];
    distributions[parameter.path] = DistributionText(parameter);
    params[parameter.path] = *point[i];
  }
  record["distributions"] = distributions;
  record["params"] = params;
  Json attributes = {{"rung", rung}, {"group", group}};
  if (origin != nullptr) attributes["origin"] = Json::array({origin->trial, origin->rung});
  if (!refused.empty()) attributes["why"] = refused;
  record["user_attrs"] = attributes;
  record["system_attrs"] = Json::object();
  record["intermediate_values"] = Json::object();
  return record;
}

std::vector<Study::Json> Study::Report(uint32_t number, uint32_t rung, uint64_t steps,
                                       const std::vector<double>& values, bool last) const {
  const double mean = MeanOf(values);
  std::vector<Json> records;
  if (std::isfinite(mean)) {
    records.push_back(OfTrial(kSetTrialIntermediateValue, number));
    records.back()["step"] = steps;
    records.back()["intermediate_value"] = Signed(mean);
  }
  // The attribute comes after it: with it the rung is finished.
  Json by_seed = Json::array();
  for (double value : values) by_seed.push_back(std::isnan(value) ? Json() : Json(Signed(value)));
  records.push_back(Note(number, absl::StrCat("rung ", rung), by_seed));
  if (last) records.push_back(EndRecord(number, TrialState::kComplete, mean));
  return records;
}

Study::Json Study::Promote(uint32_t number, uint32_t rung) const { return Note(number, "rung", rung); }

Study::Json Study::Note(uint32_t number, const std::string& key, const Json& value) const {
  Json record = OfTrial(kSetTrialUserAttribute, number);
  record["user_attr"] = Json::object({{key, value}});
  return record;
}

std::vector<Study::Json> Study::End(uint32_t number, TrialState state, const std::string& why) const {
  std::vector<Json> records;
  if (!why.empty()) records.push_back(Note(number, "why", why));
  const std::map<uint32_t, double>& results = trials_[number].results;
  const bool has_value = state != TrialState::kFailed && !results.empty();
  records.push_back(
      EndRecord(number, state, has_value ? std::optional<double>(results.rbegin()->second) : std::nullopt));
  return records;
}

Study::Json Study::EndRecord(uint32_t number, TrialState state, std::optional<double> value) const {
  Json record = OfTrial(kSetTrialStateValues, number);
  record["state"] = static_cast<int>(state);
  record["values"] = value && std::isfinite(*value) ? Json::array({Signed(*value)}) : Json();
  record["datetime_complete"] = Now();
  return record;
}

absl::Status Study::Apply(const Json& record, uint32_t trial_id) {
  const int operation = record["op_code"];
  if (operation == kSetStudyUserAttribute) {
    for (const auto& [key, value] : record.at("user_attr").items()) attributes_[key] = value;
    return absl::OkStatus();
  }
  if (operation == kCreateTrial) return ApplyNewTrial(record, trial_id);
  const auto id = record.find("trial_id");
  if (id == record.end() || !id->is_number_unsigned() || numbers_.count(*id) == 0) return absl::OkStatus();
  Trial& trial = trials_[numbers_[*id]];
  if (operation == kSetTrialUserAttribute && record.contains("user_attr")) {
    for (const auto& [key, value] : record["user_attr"].items()) ApplyAttribute(key, value, &trial);
  } else if (operation == kSetTrialStateValues) {
    if (!record.contains("state") || !record["state"].is_number_integer()) return Lacks(record);
    trial.state = static_cast<TrialState>(record["state"].get<int>());
    if (trial.state == TrialState::kComplete) trial.why.clear();  // Of an end that a crash cut off.
  }
  return absl::OkStatus();
}

absl::Status Study::ApplyNewTrial(const Json& record, uint32_t trial_id) {
  Trial trial;
  trial.number = static_cast<uint32_t>(trials_.size());
  const Json params = record.value("params", Json::object());
  for (const Parameter& parameter : space_->parameters) {
    const auto found = params.find(parameter.path);
    if (found == params.end()) {
      trial.point.push_back(std::nullopt);
      continue;
    }
    if (!found->is_number()) return Lacks(record);
    const double value = *found;
    if (parameter.kind == Parameter::Kind::kChoice &&
        !(value >= 0 && value < static_cast<double>(parameter.choices.size()))) {
      return Lacks(record);
    }
    trial.point.push_back(value);
  }
  const Json attributes = record.value("user_attrs", Json::object());
  for (const auto& [key, value] : attributes.items()) ApplyAttribute(key, value, &trial);
  if (record.contains("state") && record["state"].is_number_integer()) {
    trial.state = static_cast<TrialState>(record["state"].get<int>());
  }
  numbers_[trial_id] = trial.number;
  ids_.push_back(trial_id);
  trials_.push_back(std::move(trial));
  return absl::OkStatus();
}

void Study::ApplyAttribute(const std::string& key, const Json& value, Trial* trial) {
  uint32_t rung = 0;
  if (key == "rung" && value.is_number_unsigned()) trial->rung = value;
  if (key == "group" && value.is_number_unsigned()) trial->group = value;
  if (key == "failures" && value.is_number_unsigned()) trial->failures = value;
  if (key == "core_seconds" && value.is_number()) trial->core_seconds = value;
  if (key == "why" && value.is_string()) trial->why = value;
  if (key == "origin" && value.is_array() && value.size() == 2) trial->origin = Trial::Origin{value[0], value[1]};
  if (absl::string_view name = key;
      name.substr(0, 5) == "rung " && absl::SimpleAtoi(name.substr(5), &rung) && value.is_array() && !value.empty()) {
    trial->values.clear();
    for (const Json& one : value) trial->values.push_back(one.is_number() ? Signed(one) : kNoValue);
    trial->results[rung] = MeanOf(trial->values);
  }
}

}  // namespace skein
