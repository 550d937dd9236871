// SPDX-License-Identifier: Apache-2.0
#include "tests/monitoring/monitoring_files.h"

#include <yaml-cpp/yaml.h>

#include <filesystem>
#include <regex>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "base/process/file.h"
#include "gtest/gtest.h"

namespace skein {

using Json = nlohmann::json;

std::map<std::string, Json> Dashboards() {
  std::map<std::string, Json> dashboards;
  for (const auto& entry : std::filesystem::directory_iterator("deploy/grafana/dashboards")) {
    const auto text = ReadFile(entry.path());
    EXPECT_TRUE(text.ok()) << text.status();
    Json json = Json::parse(text.value_or(""), nullptr, false);
    EXPECT_TRUE(json.is_object()) << entry.path();
    if (json.is_object()) dashboards[entry.path().filename()] = std::move(json);
  }
  return dashboards;
}

std::vector<Panel> Panels() {
  std::vector<Panel> panels;
  for (const auto& [file, dashboard] : Dashboards()) {
    for (const Json& panel : dashboard.at("panels")) {
      panels.push_back({absl::StrCat(file, ": ", panel.value("title", "?")), panel});
    }
  }
  return panels;
}

std::vector<Rule> Rules() {
  std::vector<Rule> rules;
  for (const char* file : {"deploy/prometheus/rules/recording.yml", "deploy/prometheus/rules/alerts.yml"}) {
    try {
      const YAML::Node groups = YAML::LoadFile(file)["groups"];
      for (const auto& group : groups) {
        for (const auto& node : group["rules"]) {
          Rule rule;
          rule.alert = node["alert"].IsDefined();
          rule.name = node[rule.alert ? "alert" : "record"].as<std::string>();
          rule.expression = node["expr"].as<std::string>();
          rule.hold = node["for"].as<std::string>("");
          if (node["labels"]) rule.severity = node["labels"]["severity"].as<std::string>("");
          if (node["annotations"]) {
            rule.summary = node["annotations"]["summary"].as<std::string>("");
            rule.description = node["annotations"]["description"].as<std::string>("");
            rule.runbook = node["annotations"]["runbook_url"].as<std::string>("");
          }
          rules.push_back(rule);
        }
      }
    } catch (const YAML::Exception& error) {
      ADD_FAILURE() << file << ": " << error.what();
    }
  }
  return rules;
}

namespace {

std::string WithVariables(const std::string& expression, const std::string& runs) {
  return absl::StrReplaceAll(expression, {{"$run", runs}, {"$__rate_interval", "1m"}, {"$__interval", "1m"}});
}

}  // namespace

std::vector<Expression> PanelExpressions(const std::string& runs) {
  std::vector<Expression> expressions;
  for (const Panel& panel : Panels()) {
    if (panel.row()) continue;
    for (const Json& target : panel.json.at("targets")) {
      expressions.push_back({panel.where, WithVariables(target.at("expr"), runs)});
    }
  }
  return expressions;
}

std::vector<Expression> AnnotationExpressions(const std::string& runs) {
  static const auto* const kLabelValues = new std::regex(R"re(label_values\((.*), [a-z_]+\))re");
  std::vector<Expression> expressions;
  for (const auto& [file, dashboard] : Dashboards()) {
    for (const Json& annotation : dashboard.at("annotations").at("list")) {
      expressions.push_back({absl::StrCat(file, ": annotation ", annotation.at("name").get<std::string>()),
                             WithoutComparison(WithVariables(annotation.at("expr"), runs))});
    }
    for (const Json& variable : dashboard.at("templating").at("list")) {
      if (variable.at("type") != "query") continue;
      std::smatch match;
      const std::string query = variable.at("query").at("query");
      EXPECT_TRUE(std::regex_match(query, match, *kLabelValues)) << file << ": " << query;
      expressions.push_back({file + ": a variable", WithVariables(match[1], runs)});
    }
  }
  return expressions;
}

std::vector<Expression> RuleExpressions() {
  std::vector<Expression> expressions;
  for (const Rule& rule : Rules()) {
    expressions.push_back({rule.name, rule.alert ? WithoutComparison(rule.expression) : rule.expression});
  }
  return expressions;
}

std::string WithoutComparison(const std::string& expression) {
  static const auto* const kComparison = new std::regex(R"re(\s*(==|!=|>=|<=|>|<)\s*-?[0-9.]+\s*$)re");
  return std::regex_replace(expression, *kComparison, "");
}

std::vector<std::string> MetricsIn(const std::string& expression) {
  static const auto* const kName = new std::regex(R"re([a-z_]+:skein_[a-z0-9_:]+|\b(?:skein|process)_[a-z0-9_]+)re");
  static const auto* const kPart = new std::regex("_(bucket|sum|count)$");
  std::vector<std::string> names;
  for (std::sregex_iterator it(expression.begin(), expression.end(), *kName), end; it != end; ++it) {
    names.push_back(std::regex_replace(it->str(), *kPart, ""));
  }
  return names;
}

}  // namespace skein
