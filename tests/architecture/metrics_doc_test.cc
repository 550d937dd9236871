// SPDX-License-Identifier: Apache-2.0
// docs/metrics.md lists what the processes export: every name, with its type and labels.
#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <map>
#include <regex>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/time/time.h"
#include "actor/metrics.h"
#include "base/process/file.h"
#include "base/telemetry/resource_sampler.h"
#include "coordinator/metrics.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "learner/fit/fit_metrics.h"
#include "learner/report/metrics.h"
#include "prometheus/registry.h"
#include "serve/metrics.h"
#include "sweep/metrics.h"
#include "tests/learner/sample_metrics.h"
#include "tests/testing/wait_until.h"

namespace skein {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::IsEmpty;

struct Documented {
  std::string type;
  std::string unit;
  std::set<std::string> labels;
  std::string meaning;
};

// Rows "| `name` | type | unit | `label` `label` | meaning |", by name.
std::map<std::string, Documented> ParseDocument(const std::string& markdown) {
  std::map<std::string, Documented> metrics;
  for (const std::string& line : std::vector<std::string>(absl::StrSplit(markdown, '\n'))) {
    if (!absl::StartsWith(line, "| `")) continue;
    std::vector<std::string> cells = absl::StrSplit(line, '|');
    if (cells.size() != 7) {
      ADD_FAILURE() << "want five cells: " << line;
      continue;
    }
    for (std::string& cell : cells) absl::StripAsciiWhitespace(&cell);
    Documented metric{cells[2], cells[3], {}, cells[5]};
    const std::vector<std::string> labels = absl::StrSplit(cells[4], '`');
    for (size_t i = 1; i + 1 < labels.size(); i += 2) metric.labels.insert(labels[i]);
    const std::string name = cells[1].substr(1, cells[1].size() - 2);
    EXPECT_TRUE(metrics.emplace(name, metric).second) << name << " has two rows";
  }
  return metrics;
}

std::map<std::string, Documented> Document() {
  const auto text = ReadFile("docs/metrics.md");  // Tests run in the root of the tree.
  EXPECT_TRUE(text.ok()) << text.status();
  return ParseDocument(text.value_or(""));
}

std::set<std::string> NamesIn(const std::string& source) {
  static const auto* const kName = new std::regex(R"re("((?:skein|process)_[a-z0-9_]+)")re");
  std::set<std::string> names;
  for (std::sregex_iterator it(source.begin(), source.end(), *kName), end; it != end; ++it) names.insert((*it)[1]);
  // What else is called so: the Python package and a plugin's function.
  names.erase("skein_env");
  names.erase("skein_env_plugin");
  return names;
}

// Metric names that the sources spell out, by file.
std::map<std::string, std::set<std::string>> NamesBySource() {
  std::map<std::string, std::set<std::string>> names;
  for (const char* folder : {"actor", "base", "bench", "cli", "coordinator", "env", "eval", "launch", "learner",
                             "member", "policy", "serve", "sweep", "trajectory"}) {
    for (const fs::directory_entry& entry : fs::recursive_directory_iterator(folder)) {
      const std::string extension = entry.path().extension();
      if (extension != ".cc" && extension != ".h") continue;
      const auto text = ReadFile(entry.path());
      EXPECT_TRUE(text.ok()) << text.status();
      if (auto found = NamesIn(text.value_or("")); !found.empty()) names[entry.path()] = std::move(found);
    }
  }
  return names;
}

template <typename Map>
std::set<std::string> Keys(const Map& map) {
  std::set<std::string> keys;
  for (const auto& [key, value] : map) keys.insert(key);
  return keys;
}

std::set<std::string> Without(std::set<std::string> all, const std::set<std::string>& some) {
  for (const std::string& name : some) all.erase(name);
  return all;
}

// What all processes export once everything that makes a labelled child has happened.
std::vector<prometheus::MetricFamily> Exported() {
  prometheus::Registry registry;
  ActorMetrics actor(&registry, 1);
  LearnerMetrics learner(&registry);
  FitMetrics fit(&registry);
  v1::RunProgress progress;
  (*progress.mutable_losses())["kl"] = 0.01;
  (*progress.mutable_episode_metrics())["coverage"] = 0.5;
  (*progress.mutable_callback_metrics())["to_go"] = 3;
  learner.SetProgress(progress);
  CoordinatorMetrics coordinator(&registry);
  coordinator.CallRefused("Join", absl::StatusCode::kNotFound);
  v1::StatusResponse status;
  status.set_run_id("run");
  coordinator.RunReported(status);
  auto gpus = GpuMonitor::Open(absl::ZeroDuration(), FAKE_NVML);
  EXPECT_TRUE(gpus.ok()) << gpus.status();
  SweepMetrics sweep(&registry);
  sweep.SetShare({.cpus = 1, .gpus = 1, .memory_bytes = 1});
  coordinator.SetStatusPage("http://head:8080/");
  const ServeMetrics serve(&registry);
  ResourceSampler sampler(&registry, absl::Milliseconds(1), std::move(gpus).value_or(nullptr));
  sampler.ExportNode(absl::StrCat("process ", getpid()));
  sampler.ExportShare({.cpus = 1, .gpus = 1, .memory_bytes = 1});
  EXPECT_TRUE(WaitUntil([&] { return !std::isnan(MetricValue(registry, "skein_node_memory_size_bytes")); }));
  return registry.Collect();
}

std::string TypeName(prometheus::MetricType type) {
  switch (type) {
    case prometheus::MetricType::Counter:
      return "counter";
    case prometheus::MetricType::Gauge:
      return "gauge";
    case prometheus::MetricType::Histogram:
      return "histogram";
    default:
      return "another";
  }
}

TEST(MetricsDocument, ListsTheNamesInTheSourcesAndNoOthers) {
  std::set<std::string> in_sources;
  for (const auto& [path, names] : NamesBySource()) in_sources.insert(names.begin(), names.end());
  const std::set<std::string> documented = Keys(Document());
  EXPECT_THAT(Without(in_sources, documented), IsEmpty()) << "not in docs/metrics.md";
  EXPECT_THAT(Without(documented, in_sources), IsEmpty()) << "in docs/metrics.md only";
  EXPECT_GT(documented.size(), 40);
}

// And in a benchmark that reads one.
TEST(MetricsDocument, NamesStandInTheMetricsFilesOnly) {
  EXPECT_THAT(Keys(NamesBySource()),
              ElementsAre("actor/metrics.cc", "base/telemetry/resource_sampler.cc", "bench/receiving_learner.cc",
                          "coordinator/metrics.cc", "learner/fit/fit_metrics.cc", "learner/report/metrics.cc",
                          "serve/metrics.cc", "sweep/metrics.cc"));
}

TEST(MetricsDocument, TypesAndLabelsAreThoseExported) {
  const std::map<std::string, Documented> documented = Document();
  std::set<std::string> exported;
  for (const prometheus::MetricFamily& family : Exported()) {
    exported.insert(family.name);
    const auto row = documented.find(family.name);
    if (row == documented.end()) continue;  // The other test says so.
    EXPECT_EQ(row->second.type, TypeName(family.type)) << family.name;
    EXPECT_FALSE(family.metric.empty()) << family.name;
    for (const prometheus::ClientMetric& metric : family.metric) {
      std::set<std::string> labels;
      for (const prometheus::ClientMetric::Label& label : metric.label) labels.insert(label.name);
      EXPECT_EQ(row->second.labels, labels) << family.name;
    }
  }
  EXPECT_THAT(Without(Keys(documented), exported), IsEmpty()) << "documented, but nothing exports them";
}

TEST(MetricsDocument, EveryRowSaysUnitAndMeaning) {
  for (const auto& [name, metric] : Document()) {
    EXPECT_NE(metric.unit, "") << name;
    EXPECT_NE(metric.meaning, "") << name;
    for (const char* unit : {"seconds", "bytes"}) {
      EXPECT_TRUE(!absl::StrContains(name, absl::StrCat("_", unit)) || metric.unit == unit) << name;
    }
    EXPECT_EQ(absl::EndsWith(name, "_total"), metric.type == "counter") << name;
  }
}

// The parts of this test, on texts in which something is wrong.
TEST(MetricsDocument, ARowAndANameAreRead) {
  const auto metrics =
      ParseDocument("| name | type |\n|---|---|\n| `skein_a_total` | counter | 1 | `x` `y` | What. |\n");
  ASSERT_EQ(metrics.size(), 1u);
  EXPECT_EQ(metrics.at("skein_a_total").type, "counter");
  EXPECT_THAT(metrics.at("skein_a_total").labels, ElementsAre("x", "y"));
  EXPECT_THAT(NamesIn(R"(Counter(r, "skein_a_total", "Help with skein_words"); Name("process_b"); Log("skein-actor"))"),
              ElementsAre("process_b", "skein_a_total"));
}

}  // namespace
}  // namespace skein
