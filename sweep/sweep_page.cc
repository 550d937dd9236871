// SPDX-License-Identifier: Apache-2.0
#include "sweep/sweep_page.h"

#include <cmath>

#include "absl/strings/str_replace.h"
#include "absl/strings/string_view.h"
#include "nlohmann/json.hpp"
#include "sweep/importance.h"
#include "sweep/sweep_report.h"

namespace skein {

namespace embedded {
absl::string_view sweep_page_html();
}

std::string SweepPage(const SweepFile& file, const Study& study, const Scheduler& scheduler, bool running) {
  using Json = nlohmann::ordered_json;
  Json parameters = Json::array(), trials = Json::array();
  const Importance importance = ImportanceOf(file.space, study.trials(), scheduler);
  for (size_t i = 0; i < file.space.parameters.size(); ++i) {
    const Parameter& one = file.space.parameters[i];
    Json entry = {{"path", one.path}, {"log", one.log}, {"importance", importance.shares[i]}};
    if (one.kind == Parameter::Kind::kChoice) {
      entry["choices"] = one.choices;
    } else {
      entry["low"] = one.low;
      entry["high"] = one.high;
    }
    parameters.push_back(std::move(entry));
  }
  for (const Trial& trial : study.trials()) {
    Json point = Json::array(), results = Json::array();
    for (const auto& value : trial.point) point.push_back(value ? Json(*value) : Json());
    for (const auto& [rung, value] : trial.results) {
      if (std::isfinite(value))
        results.push_back(Json::array({scheduler.rungs(trial.group)[rung], study.Signed(value)}));
    }
    trials.push_back({{"number", trial.number},
                      {"state", StateName(trial)},
                      {"point", point},
                      {"results", results},
                      {"why", trial.why}});
  }
  const Json data = {{"name", file.config.name()},
                     {"metric", file.config.metric()},
                     {"minimize", file.config.goal() == v1::SWEEP_GOAL_MINIMIZE},
                     {"running", running},
                     {"compared", {{"env_steps", importance.env_steps}, {"trials", importance.trials}}},
                     {"parameters", parameters},
                     {"trials", trials}};
  // No text can end the script that it stands in.
  const std::string text = absl::StrReplaceAll(data.dump(-1, ' ', false, Json::error_handler_t::replace),
                                               {{"<", "\\u003c"}, {"&", "\\u0026"}});
  return absl::StrReplaceAll(embedded::sweep_page_html(), {{"SWEEP_DATA", text}});
}

}  // namespace skein
