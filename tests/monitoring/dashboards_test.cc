// SPDX-License-Identifier: Apache-2.0
// What Grafana would have to find in deploy/grafana. It is not here to draw it: structure and expressions are checked.
#include <yaml-cpp/yaml.h>

#include <regex>
#include <set>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/process/file.h"
#include "gmock/gmock.h"
#include "skein/v1/config.pb.h"
#include "tests/monitoring/monitoring_files.h"
#include "tests/testing/http_get.h"

namespace skein {
namespace {

using Json = nlohmann::json;
using testing::IsEmpty;

constexpr char kDatasource[] = "${datasource}";

// Names in the rows "| `name` | ..." of docs/metrics.md, and those that rules record.
std::set<std::string> KnownMetrics() {
  std::set<std::string> names;
  const std::string text = ReadFile("docs/metrics.md").value_or("");
  for (const absl::string_view line : absl::StrSplit(text, '\n')) {
    if (!absl::StartsWith(line, "| `")) continue;
    names.insert(std::string(line.substr(3, line.find('`', 3) - 3)));
  }
  for (const Rule& rule : Rules()) {
    if (!rule.alert) names.insert(rule.name);
  }
  return names;
}

// Settings "section.key" in a text that no configuration has.
std::vector<std::string> UnknownSettings(const std::string& text) {
  static const auto* const kSetting = new std::regex(R"re(\b([a-z]+)\.([a-z_]+)\b)re");
  std::vector<std::string> unknown;
  for (std::sregex_iterator it(text.begin(), text.end(), *kSetting), end; it != end; ++it) {
    const auto* section = v1::RunConfig::descriptor()->FindFieldByName((*it)[1]);
    if (section == nullptr || section->message_type() == nullptr) {
      unknown.push_back(it->str());
    } else if (section->message_type()->FindFieldByName((*it)[2]) == nullptr) {
      unknown.push_back(it->str());
    }
  }
  return unknown;
}

TEST(Dashboards, AreFiveWithNamesOfTheirOwn) {
  std::set<std::string> uids, titles;
  for (const auto& [file, dashboard] : Dashboards()) {
    EXPECT_TRUE(uids.insert(dashboard.at("uid").get<std::string>()).second) << file;
    EXPECT_TRUE(titles.insert(dashboard.at("title").get<std::string>()).second) << file;
    EXPECT_LE(dashboard.at("uid").get<std::string>().size(), 40u) << file;  // Grafana's limit.
    EXPECT_GE(dashboard.at("schemaVersion"), 36) << file;                   // Where data sources are objects.
    EXPECT_FALSE(dashboard.contains("__inputs")) << file << ": provisioning does not ask";
  }
  EXPECT_THAT(titles,
              testing::ElementsAre("Skein / Learning", "Skein / Nodes and GPUs", "Skein / Overview",
                                   "Skein / Synchronisation and staleness", "Skein / Throughput and efficiency"));
}

TEST(Dashboards, LetOneChooseDataSourceAndSeveralRuns) {
  for (const auto& [file, dashboard] : Dashboards()) {
    std::map<std::string, Json> variables;
    for (const Json& variable : dashboard.at("templating").at("list")) variables[variable.at("name")] = variable;
    ASSERT_EQ(variables.size(), 3u) << file;
    EXPECT_EQ(variables["datasource"].value("type", ""), "datasource") << file;
    EXPECT_EQ(variables["datasource"].value("query", ""), "prometheus") << file;
    EXPECT_EQ(variables["run"].value("type", ""), "query") << file;
    EXPECT_EQ(variables["run"].at("datasource").at("uid"), kDatasource) << file;
    EXPECT_EQ(variables["run"].at("query").at("query"), "label_values(skein_coordinator_members, run)") << file;
    EXPECT_TRUE(variables["run"].value("multi", false)) << file;
    EXPECT_TRUE(variables["run"].value("includeAll", false)) << file;
    EXPECT_EQ(variables["status_page"].at("query").at("query"),
              "label_values(skein_coordinator_status_page_info{run=~\"$run\"}, url)");
    for (const char* metric : {"skein_coordinator_members", "skein_coordinator_status_page_info"}) {
      EXPECT_EQ(KnownMetrics().count(metric), 1u) << metric;
    }
  }
}

TEST(Dashboards, LeadToEachOtherAndToTheStatusPage) {
  for (const auto& [file, dashboard] : Dashboards()) {
    bool others = false, page = false;
    for (const Json& link : dashboard.at("links")) {
      const std::string type = link.at("type");
      others |= type == "dashboards" && link.at("tags") == dashboard.at("tags") && link.value("includeVars", false) &&
                link.value("keepTime", false);
      page |= type == "link" && link.at("url") == "${status_page}";
    }
    EXPECT_TRUE(others) << file;
    EXPECT_TRUE(page) << file;
  }
  const Json state = Dashboards()["overview.json"].at("panels").at(0);
  EXPECT_EQ(state.at("fieldConfig").at("defaults").at("links").at(0).at("url"), "${__field.labels.url}");
}

TEST(Dashboards, ShowJoinsLeavesCheckpointsAndFaults) {
  for (const auto& [file, dashboard] : Dashboards()) {
    std::vector<std::string> names;
    for (const Json& annotation : dashboard.at("annotations").at("list")) {
      names.push_back(annotation.at("name"));
      EXPECT_EQ(annotation.at("datasource").at("uid"), kDatasource) << file;
      EXPECT_TRUE(annotation.at("enable").get<bool>()) << file;
      EXPECT_TRUE(absl::StrContains(annotation.at("titleFormat").get<std::string>(), "{{run}}")) << file;
      // Without one, every sample would be an event.
      EXPECT_NE(WithoutComparison(annotation.at("expr")), annotation.at("expr").get<std::string>()) << file;
    }
    EXPECT_THAT(names, testing::ElementsAre("Joins", "Leaves", "Checkpoints", "Faults")) << file;
  }
}

// Two lines of two runs must not have one name: each legend names the run, or the node, which no run owns.
TEST(Dashboards, LegendsTellRunsApart) {
  for (const Panel& panel : Panels()) {
    if (panel.row()) continue;
    for (const Json& target : panel.json.at("targets")) {
      const std::string legend = target.at("legendFormat"), text = target.at("expr");
      EXPECT_TRUE(absl::StrContains(legend, "{{run}}") || absl::StrContains(legend, "{{node}}") ||
                  absl::StartsWith(text, "count(ALERTS"))
          << panel.where << ": " << legend;
      // What a legend names must have outlived the aggregation.
      const std::regex by(R"re(\bby \(([a-z_, ]+)\))re");
      std::smatch outermost;
      if (std::regex_search(text, outermost, by) && absl::StrContains(legend, "{{run}}")) {
        EXPECT_TRUE(absl::StrContains(outermost[1].str(), "run")) << panel.where << ": " << text;
      }
    }
  }
}

TEST(Dashboards, PanelsHaveIdsTypesUnitsAndTheDataSource) {
  const std::set<std::string> units = {"percentunit", "short", "s", "Bps", "bytes", "watt", "celsius"};
  for (const auto& [file, dashboard] : Dashboards()) {
    std::set<int> ids;
    std::set<std::string> titles;
    for (const Json& panel : dashboard.at("panels")) {
      const std::string where = absl::StrCat(file, ": ", panel.value("title", "?"));
      EXPECT_TRUE(ids.insert(panel.at("id").get<int>()).second) << where;
      EXPECT_TRUE(titles.insert(panel.at("title").get<std::string>()).second || file == "overview.json") << where;
      const std::string type = panel.at("type");
      if (type == "row") continue;
      EXPECT_TRUE(type == "timeseries" || (type == "stat" && file == "overview.json")) << where;
      EXPECT_EQ(units.count(panel.at("fieldConfig").at("defaults").value("unit", "")), 1u) << where;
      EXPECT_EQ(panel.at("datasource").at("type"), "prometheus") << where;
      EXPECT_EQ(panel.at("datasource").at("uid"), kDatasource) << where;
      ASSERT_FALSE(panel.at("targets").empty()) << where;
      std::set<std::string> references;
      for (const Json& target : panel.at("targets")) {
        EXPECT_TRUE(references.insert(target.at("refId").get<std::string>()).second) << where;
        EXPECT_EQ(target.at("datasource").at("uid"), kDatasource) << where;
        EXPECT_NE(target.at("legendFormat"), "") << where;
      }
    }
  }
}

TEST(Dashboards, PanelsDoNotOverlap) {
  for (const auto& [file, dashboard] : Dashboards()) {
    std::set<std::pair<int, int>> taken;
    for (const Json& panel : dashboard.at("panels")) {
      const Json& place = panel.at("gridPos");
      const int x = place.at("x"), y = place.at("y"), w = place.at("w"), h = place.at("h");
      EXPECT_LE(x + w, 24) << file << ": " << panel.at("title");
      for (int column = x; column < x + w; ++column) {
        for (int line = y; line < y + h; ++line) {
          EXPECT_TRUE(taken.insert({column, line}).second) << file << ": " << panel.at("title");
        }
      }
    }
  }
}

TEST(Dashboards, EveryPanelSaysWhatToDoWhenItLooksBad) {
  for (const Panel& panel : Panels()) {
    if (panel.row()) continue;
    const std::string description = panel.json.value("description", "");
    EXPECT_TRUE(absl::StrContains(description, "If ")) << panel.where << ": say what to do if ...";
    EXPECT_THAT(UnknownSettings(description), IsEmpty()) << panel.where;
  }
}

// As "name{": every series that is asked for is one of the chosen run.
TEST(Dashboards, ExpressionsAskForTheChosenRun) {
  const std::regex series(R"re((?:[a-z_]+:)?(?:skein|process)_[a-z0-9_:]+|ALERTS\b)re");
  for (const Panel& panel : Panels()) {
    if (panel.row()) continue;
    for (const Json& target : panel.json.at("targets")) {
      const std::string text = target.at("expr");
      int found = 0;
      for (std::sregex_iterator it(text.begin(), text.end(), series), end; it != end; ++it, ++found) {
        const std::string rest = it->suffix();
        EXPECT_TRUE(rest[0] == '{' && absl::StrContains(rest.substr(0, rest.find('}')), "run=~\"$run\""))
            << panel.where << ": " << it->str();
      }
      EXPECT_GT(found, 0) << panel.where;
    }
  }
}

TEST(Dashboards, MetricsAreDocumented) {
  const std::set<std::string> known = KnownMetrics();
  std::vector<Expression> all = PanelExpressions("r");
  for (const Expression& expression : AnnotationExpressions("r")) all.push_back(expression);
  for (const Expression& expression : all) {
    for (const std::string& name : MetricsIn(expression.text)) {
      EXPECT_EQ(known.count(name), 1u) << expression.where << ": " << name;
    }
  }
}

// Prometheus' own parser reads them, each as a rule.
TEST(Dashboards, ExpressionsParse) {
  std::vector<Expression> expressions = PanelExpressions("r");
  for (const Expression& expression : AnnotationExpressions("r")) expressions.push_back(expression);
  Json rules = Json::array();
  for (const Expression& expression : expressions) rules.push_back({{"record", "r"}, {"expr", expression.text}});
  // Two panels may ask for the same.
  const Json file = {{"groups", {{{"name", "panels"}, {"rules", rules}}}}};
  std::string output;
  EXPECT_EQ(RunWithInput("promtool check rules --lint=none /dev/stdin", file.dump(), &output), 0) << output;
  EXPECT_TRUE(absl::StrContains(output, absl::StrCat("SUCCESS: ", expressions.size(), " rules found"))) << output;
}

TEST(Dashboards, ProvisioningFindsThem) {
  const YAML::Node sources = YAML::LoadFile("deploy/grafana/provisioning/datasources/prometheus.yml");
  ASSERT_EQ(sources["datasources"].size(), 1u);
  EXPECT_EQ(sources["datasources"][0]["type"].as<std::string>(), "prometheus");
  const YAML::Node prometheus = YAML::LoadFile("deploy/prometheus/prometheus.yml");
  EXPECT_EQ(sources["datasources"][0]["jsonData"]["timeInterval"].as<std::string>(),
            prometheus["global"]["scrape_interval"].as<std::string>());
  const YAML::Node providers = YAML::LoadFile("deploy/grafana/provisioning/dashboards/skein.yml");
  EXPECT_EQ(providers["providers"][0]["type"].as<std::string>(), "file");
  EXPECT_EQ(providers["providers"][0]["options"]["path"].as<std::string>(), "/var/lib/grafana/dashboards");
}

// The parts of this test, on texts in which something is wrong.
TEST(Dashboards, WhatIsWrongIsFound) {
  EXPECT_THAT(UnknownSettings("lower ppo.lr, ppo.speed or turbo.mode"),
              testing::ElementsAre("ppo.speed", "turbo.mode"));
  EXPECT_THAT(MetricsIn("rate(skein_a_total{x=\"y\"}[1m]) / run:skein_b:rate1m + skein_c_seconds_bucket"),
              testing::ElementsAre("skein_a_total", "run:skein_b:rate1m", "skein_c_seconds"));
}

}  // namespace
}  // namespace skein
