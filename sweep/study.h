// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "nlohmann/json.hpp"
#include "sweep/space.h"
#include "sweep/trial.h"

namespace skein {

// The trials of one study of a journal, and the records that change them.   record -> Journal -> Apply -> trials
// Records have Optuna's fields; what only Skein needs are users' attributes of trials. Trials that others have added to
// the study are none of these: numbers count Skein's own. Not thread-safe.
class Study {
 public:
  using Json = nlohmann::json;

  // `id`: its place among the journal's studies. `space` must outlive this. With `minimize` results change their sign
  // between journal and Trial.
  Study(const Space* space, uint32_t id, bool minimize) : space_(space), id_(id), minimize_(minimize) {}

  const std::vector<Trial>& trials() const { return trials_; }
  const Trial& trial(uint32_t number) const { return trials_[number]; }
  const std::map<std::string, Json>& attributes() const { return attributes_; }

  // A result as the metric has it, from one as Trial has it, and the other way round.
  double Signed(double value) const { return minimize_ ? -value : value; }

  // A study must be created before its trials.
  Json CreateStudy(const std::string& name) const;
  Json SetAttribute(const std::string& key, const Json& value) const;
  // One record, so that no trial can be there in part. `rung`: it may train up to this one. `refused`: why it is
  // stopped at once; empty = it is not.
  Json CreateTrial(const Point& point, uint32_t rung, uint32_t group, const Trial::Origin* origin,
                   const std::string& refused = "") const;
  // The values at a rung of `steps` env steps, one for each seed, as Trial has them: higher is better; NaN: there is
  // none. `last`: the trial is complete with them. A crash that leaves the first of these records leaves a trial that
  // is to be reported once more, or to be completed.
  std::vector<Json> Report(uint32_t number, uint32_t rung, uint64_t steps, const std::vector<double>& values,
                           bool last) const;
  Json Promote(uint32_t number, uint32_t rung) const;
  Json Note(uint32_t number, const std::string& key, const Json& value) const;
  // Ends a trial; with its last result as its value, if it has one.
  std::vector<Json> End(uint32_t number, TrialState state, const std::string& why) const;

  // Takes in a record of this study that Skein has written; `trial_id`: for CreateTrial, how many trials the journal
  // had before. DataLoss: it lacks what it needs.
  absl::Status Apply(const Json& record, uint32_t trial_id);
  bool HasTrialId(uint32_t trial_id) const { return numbers_.count(trial_id) > 0; }
  uint32_t id() const { return id_; }
  // Whether Skein has written it.
  static bool IsOwn(const Json& record);

 private:
  Json Record(int operation) const;
  Json OfTrial(int operation, uint32_t number) const;
  Json EndRecord(uint32_t number, TrialState state, std::optional<double> value) const;
  absl::Status ApplyNewTrial(const Json& record, uint32_t trial_id);
  void ApplyAttribute(const std::string& key, const Json& value, Trial* trial);

  const Space* const space_;
  const uint32_t id_;
  const bool minimize_;
  std::vector<Trial> trials_;
  std::vector<uint32_t> ids_;             // Of each trial, in the journal.
  std::map<uint32_t, uint32_t> numbers_;  // The other way round.
  std::map<std::string, Json> attributes_;
};

// Optuna's description of a parameter's distribution, as JSON text; and such a parameter's part of a space for the
// helper.
std::string DistributionText(const Parameter& parameter);

// A choice as a value of JSON: true, 3, 0.5, or a text.
nlohmann::json ChoiceValue(const std::string& text);

}  // namespace skein
