// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>
#include <vector>

#include "nlohmann/json.hpp"

// What deploy/grafana and deploy/prometheus say. Tests run in the root of the tree; what cannot be read fails the test.
namespace skein {

// Dashboards by file name.
std::map<std::string, nlohmann::json> Dashboards();

struct Panel {
  std::string where;  // "overview.json: Mean return"
  nlohmann::json json;
  bool row() const { return json.value("type", "") == "row"; }
};
// Of all dashboards.
std::vector<Panel> Panels();

struct Rule {
  std::string name;
  bool alert = false;
  std::string expression;
  std::string hold;  // Of an alert: `for`, empty = at once.
  std::string severity, summary, description, runbook;
};
std::vector<Rule> Rules();

// An expression of PromQL and where it stands.
struct Expression {
  std::string where;
  std::string text;
};
// Of each target of each panel, with `runs` as the chosen runs (a regular expression) and a minute as the interval.
std::vector<Expression> PanelExpressions(const std::string& runs);
// Of each dashboard's annotations and of its variables' queries, the former without the comparison they end in.
std::vector<Expression> AnnotationExpressions(const std::string& runs);
// Of each rule; of alerts without the comparison, so that they have data while nothing is wrong.
std::vector<Expression> RuleExpressions();

// `expression` without the comparison with a number that it ends in; unchanged if it ends in none.
std::string WithoutComparison(const std::string& expression);

// Names of Skein's metrics and of recorded ones in an expression, without _bucket, _sum and _count.
std::vector<std::string> MetricsIn(const std::string& expression);

}  // namespace skein
