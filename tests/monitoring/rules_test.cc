// SPDX-License-Identifier: Apache-2.0
// deploy/prometheus/rules: what they do is tested by promtool (deploy/prometheus/tests), what they say here.
#include <map>
#include <set>
#include <string>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_split.h"
#include "base/process/file.h"
#include "gtest/gtest.h"
#include "tests/monitoring/monitoring_files.h"

namespace skein {
namespace {

TEST(Rules, WithoutComparisonOnlyTheLastOneGoes) {
  EXPECT_EQ(WithoutComparison("sum by (run) (a) > 0"), "sum by (run) (a)");
  EXPECT_EQ(WithoutComparison("a == 1\n"), "a");
  EXPECT_EQ(WithoutComparison("max(a > 0) >= -0.5"), "max(a > 0)");
  EXPECT_EQ(WithoutComparison("a > b"), "a > b");
}

TEST(Rules, AlertsEndInAComparisonAndSayWhatToDo) {
  std::set<std::string> names;
  for (const Rule& rule : Rules()) {
    EXPECT_TRUE(names.insert(rule.name).second) << rule.name;
    if (!rule.alert) continue;
    EXPECT_NE(WithoutComparison(rule.expression), rule.expression) << rule.name;
    EXPECT_TRUE(rule.severity == "warning" || rule.severity == "critical") << rule.name;
    EXPECT_TRUE(absl::StrContains(rule.summary, "{{ $labels.run }}")) << rule.name;
    EXPECT_GT(rule.description.size(), 20u) << rule.name;
    EXPECT_EQ(rule.runbook, "docs/monitoring.md#" + absl::AsciiStrToLower(rule.name));
  }
  for (const char* wanted : {"SkeinLearnerStarved", "SkeinNoActors", "SkeinActorsLost", "SkeinNoLearner",
                             "SkeinRankLost", "SkeinEnvironmentsFailing", "SkeinStateNotWritten", "SkeinPolicyLagHigh",
                             "SkeinCheckpointFailing", "SkeinNotFinite", "SkeinBarrierSlow", "SkeinAccountImbalance"}) {
    EXPECT_EQ(names.count(wanted), 1u) << wanted;
  }
}

TEST(Rules, MetricsAreDocumentedOrRecorded) {
  const std::string document = ReadFile("docs/metrics.md").value_or("");
  std::set<std::string> recorded;
  for (const Rule& rule : Rules()) {
    if (!rule.alert) recorded.insert(rule.name);
  }
  for (const Rule& rule : Rules()) {
    for (const std::string& name : MetricsIn(rule.expression)) {
      EXPECT_TRUE(recorded.count(name) == 1 || absl::StrContains(document, "| `" + name + "` |"))
          << rule.name << ": " << name;
    }
  }
}

TEST(Rules, EachHasATestOfPromtool) {
  const std::string tests = ReadFile("deploy/prometheus/tests/alerts.yml").value_or("") +
                            ReadFile("deploy/prometheus/tests/recording.yml").value_or("");
  for (const Rule& rule : Rules()) EXPECT_TRUE(absl::StrContains(tests, rule.name)) << rule.name;
}

// A heading is where runbook_url leads to; below it stand the meaning and what to do.
TEST(Rules, EveryAlertIsExplainedUnderAHeadingOfItsOwn) {
  const std::string document = ReadFile("docs/monitoring.md").value_or("");
  std::map<std::string, std::string> sections;
  for (const absl::string_view section : absl::StrSplit(document, "\n### ")) {
    const std::pair<std::string, std::string> parts = absl::StrSplit(section, absl::MaxSplits('\n', 1));
    EXPECT_TRUE(sections.insert(parts).second) << parts.first;
  }
  for (const Rule& rule : Rules()) {
    if (!rule.alert) continue;
    const std::string text = sections[rule.name];
    EXPECT_TRUE(absl::StrContains(text, "\n**Means:** ")) << rule.name;
    EXPECT_TRUE(absl::StrContains(text, "\n**Do:** ")) << rule.name;
    sections.erase(rule.name);
  }
  for (const auto& [heading, text] : sections)
    EXPECT_FALSE(absl::StartsWith(heading, "Skein")) << "no alert " << heading;
}

}  // namespace
}  // namespace skein
