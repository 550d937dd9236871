// SPDX-License-Identifier: Apache-2.0
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "eval/env_check.h"
#include "nlohmann/json.hpp"

namespace skein {
namespace {

using Json = nlohmann::ordered_json;

const char* Word(Verdict verdict) {
  return verdict == Verdict::kOk ? "ok" : verdict == Verdict::kFails ? "fails" : "not_applicable";
}

}  // namespace

std::string FormatCheckedPoint(const CheckedPoint& point) {
  const char* const verdict = point.verdict == Verdict::kNotApplicable ? "-" : Word(point.verdict);
  std::string text = absl::StrFormat("  %-6s%-18s %s\n", verdict, point.name, point.found);
  if (!point.remedy.empty()) absl::StrAppend(&text, absl::StrFormat("  %-6s%-18s do: %s\n", "", "", point.remedy));
  return text;
}

std::string FormatVerdict(const EnvCheck& check) {
  return check.ok() ? "it keeps the contract\n" : "it does not keep the contract\n";
}

std::string EnvCheckJson(const EnvCheck& check) {
  Json json = {{"env_id", check.env_id}, {"ok", check.ok()}, {"points", Json::array()}};
  for (const CheckedPoint& point : check.points) {
    json["points"].push_back(
        {{"point", point.name}, {"verdict", Word(point.verdict)}, {"found", point.found}, {"remedy", point.remedy}});
  }
  json["env_steps_per_second"] = {{"alone", check.alone}, {"together", check.together}, {"in_actor", check.in_actor}};
  return json.dump(2, ' ', false, Json::error_handler_t::replace);
}

}  // namespace skein
