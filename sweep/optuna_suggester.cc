// SPDX-License-Identifier: Apache-2.0
#include "sweep/optuna_suggester.h"

#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "base/net/credential_flags.h"
#include "base/process/exit_code.h"
#include "base/process/subprocess.h"

namespace skein {

namespace embedded {
absl::string_view optuna_helper_py();
}

namespace {

using Json = nlohmann::json;

// A Gaussian process over many trials may take its time.
constexpr absl::Duration kAnswer = absl::Minutes(5);

Json SpaceJson(const Space& space) {
  Json list = Json::array();
  for (const Parameter& parameter : space.parameters) {
    Json one = {{"path", parameter.path}, {"distribution", DistributionText(parameter)}};
    if (parameter.when) one["when"] = {{"parameter", parameter.when->parameter}, {"values", parameter.when->values}};
    list.push_back(std::move(one));
  }
  return list;
}

}  // namespace

absl::StatusOr<std::unique_ptr<OptunaSuggester>> OptunaSuggester::Start(const Options& options, const SweepFile& file,
                                                                        const Scheduler& scheduler) {
  std::unique_ptr<OptunaSuggester> suggester(new OptunaSuggester(file, scheduler));
  auto process =
      JsonLineProcess::Start({PythonProgram(""), "-u", "-c", std::string(embedded::optuna_helper_py())},
                             {.log_path = options.folder + "/log/optuna.log", .unset_env = CredentialFileVariables()});
  if (absl::IsNotFound(process.status())) {
    return absl::UnavailableError(absl::StrCat("sampler ", file.config.sampler().kind(), " is Optuna's, and ",
                                               process.status().message(),
                                               "; install Python, or name it with SKEIN_PYTHON"));
  }
  if (!process.ok()) return process.status();
  suggester->process_ = *std::move(process);
  const v1::SweepConfig& config = file.config;
  const std::string given = config.sampler().options();
  const auto answer =
      suggester->Ask({{"begin",
                       {{"sampler", config.sampler().kind()},
                        {"seed", config.seed()},
                        {"options", given.empty() ? Json::object() : Json::parse(given)},
                        {"direction", config.goal() == v1::SWEEP_GOAL_MINIMIZE ? "minimize" : "maximize"},
                        {"space", SpaceJson(file.space)},
                        {"journal", options.journal},
                        {"study", config.name()},
                        {"state", options.folder + "/sampler.pickle"}}}});
  if (!answer.ok()) return answer.status();
  suggester->version_ = answer->value("optuna", "");
  return suggester;
}

absl::StatusOr<Json> OptunaSuggester::Ask(const Json& request) {
  auto answer = process_->Ask(request, kAnswer);
  if (!answer.ok()) {
    return absl::UnavailableError(absl::StrCat("Optuna's sampler: ", answer.status().message(),
                                               "; log/optuna.log in the sweep's folder says more"));
  }
  if (!answer->contains("error")) return answer;
  const std::string message = answer->value("error", "");
  const int code = answer->value("code", static_cast<int>(kExitInternal));
  if (code == kExitUsage) return absl::InvalidArgumentError(absl::StrCat(file_.sampler_place, ": ", message));
  const std::string what = absl::StrCat("sampler ", file_.config.sampler().kind(), ": ", message);
  if (code == kExitUnavailable)
    return absl::UnavailableError(absl::StrCat(what, " (SKEIN_PYTHON names another Python)"));
  return absl::InternalError(what);
}

absl::StatusOr<std::optional<Point>> OptunaSuggester::Suggest(const std::vector<Trial>& trials) {
  const auto answer = Ask({{"ask", trials.size()}});
  if (!answer.ok()) return answer.status();
  const auto values = answer->find("point");
  if (values == answer->end() || !values->is_array() || values->size() != file_.space.parameters.size()) {
    return absl::InternalError("Optuna's sampler: an answer without a point");
  }
  Point point;
  for (const Json& value : *values) {
    point.push_back(value.is_number() ? std::optional<double>(value.get<double>()) : std::nullopt);
  }
  return point;
}

absl::Status OptunaSuggester::Tell(const Trial& trial) {
  Json reports = Json::array();
  const double sign = file_.config.goal() == v1::SWEEP_GOAL_MINIMIZE ? -1 : 1;
  for (const auto& [rung, value] : trial.results) {
    if (std::isfinite(value)) reports.push_back(Json::array({scheduler_.rungs(trial.group)[rung], sign * value}));
  }
  Json request = {{"tell", trial.number}, {"state", static_cast<int>(trial.state)}, {"reports", reports}};
  request["value"] = trial.results.empty() ? Json() : Json(sign * trial.results.rbegin()->second);
  return Ask(request).status();
}

}  // namespace skein
