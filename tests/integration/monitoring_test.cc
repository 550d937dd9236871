// SPDX-License-Identifier: Apache-2.0
// A real Prometheus with deploy/prometheus beside a real run: everything that dashboards, rules and alerts ask for has
// data. Of alerts the comparison at the end is left out (WithoutComparison), since nothing is wrong. The node has GPUs,
// by a driver's library of the tests.
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "base/process/file.h"
#include "gmock/gmock.h"
#include "nlohmann/json.hpp"
#include "tests/monitoring/monitoring_files.h"
#include "tests/testing/http_get.h"
#include "tests/testing/program.h"
#include "tests/testing/wait_until.h"

namespace skein {
namespace {

using Json = nlohmann::json;

// Two runs, compared: what dashboards ask for is asked for both at once.
constexpr char kRun[] = "watched", kOther[] = "other", kBoth[] = "watched|other";

std::string UrlEncode(const std::string& text) {
  std::string encoded;
  for (const unsigned char c : text) {
    if (absl::ascii_isalnum(c)) {
      encoded += static_cast<char>(c);
    } else {
      absl::StrAppendFormat(&encoded, "%%%02X", c);
    }
  }
  return encoded;
}

// The answer of Prometheus' API: an object, or null. It may come in a chunk.
Json Ask(int port, const std::string& path) {
  const std::string body = HttpGet(port, path).body;
  const size_t begin = body.find('{'), end = body.rfind('}');
  if (begin == std::string::npos || end == std::string::npos) return nullptr;
  const Json answer = Json::parse(body.substr(begin, end - begin + 1), nullptr, false);
  return answer.is_object() ? answer : Json(nullptr);
}

// How many series of the expression have a number, neither NaN nor infinite; -1: it was refused, or nobody answered.
int FiniteSeries(int port, const std::string& expression) {
  const std::string query = absl::StrCat("count(abs(", expression, ") < Inf)");
  const Json answer = Ask(port, "/api/v1/query?query=" + UrlEncode(query));
  if (!answer.is_object() || answer.value("status", "") != "success") return -1;
  const Json& result = answer.at("data").at("result");
  return result.empty() ? 0 : std::atoi(result.at(0).at("value").at(1).get<std::string>().c_str());
}

// deploy/prometheus/prometheus.yml for these runs, and faster. Whatever is replaced must be there.
std::string Configuration(int http_port, int other_http_port) {
  std::string text = ReadFile("deploy/prometheus/prometheus.yml").value_or("");
  const std::string rules = std::filesystem::absolute("deploy/prometheus/rules").string() + "/";
  for (const auto& [from, to] : std::map<std::string, std::string>{
           {"scrape_interval: 5s", "scrape_interval: 1s"},
           {"scrape_timeout: 4s", "scrape_timeout: 1s"},
           {"evaluation_interval: 15s", "evaluation_interval: 1s"},
           {"refresh_interval: 10s", "refresh_interval: 1s"},
           {" rules/", " " + rules},
           {"http://coordinator:8080/sd/prometheus",
            absl::StrCat("http://127.0.0.1:", http_port,
                         "/sd/prometheus\n      - url: http://127.0.0.1:", other_http_port, "/sd/prometheus")}}) {
    EXPECT_GT(absl::StrReplaceAll({{from, to}}, &text), 0) << from;
  }
  return text;
}

// Two ranks, so that there are barriers and sums of gradients; an environment with metrics of its own; short episodes
// and many checkpoints.
TEST(Monitoring, EverythingThatIsAskedForHasData) {
  setenv("LD_LIBRARY_PATH", FAKE_NVML_FOLDER, 1);
  const ScratchFolder runs;
  std::vector<std::string> arguments = absl::StrSplit(
      "train --env UavNavigate-v0 --steps 1000000000 --learners 2 --actors 2 --runners 2 --envs 8 --envs-per-runner 2",
      ' ');
  for (const char* setting : {"rollout.steps_per_iteration=256", "ppo.minibatch_size=64", "env.max_episode_steps=20",
                              "env.uav.uavs=2", "checkpoint.interval_steps=2000"}) {
    arguments.insert(arguments.end(), {"--set", setting});
  }
  arguments.insert(arguments.end(), {"--name", kRun, "--runs-dir", runs.path()});
  Running skein("skein", arguments);
  const std::string http_port = skein.WaitForOutput("metrics discovery: http://127\\.0\\.0\\.1:(\\d+)/");
  ASSERT_NE(http_port, "");

  // One rank and one actor, slow: it is there to be told apart.
  Running other("skein", {"train", "--env", "CartPole-v1", "--steps", "1000000000", "--runners", "1", "--envs", "8",
                          "--envs-per-runner", "8", "--set", "rollout.steps_per_iteration=256", "--set",
                          "ppo.minibatch_size=256", "--name", kOther, "--runs-dir", runs.path()});
  const std::string other_http_port = other.WaitForOutput("metrics discovery: http://127\\.0\\.0\\.1:(\\d+)/");
  ASSERT_NE(other_http_port, "");

  const ScratchFolder folder;
  const std::string config =
      folder.Write("prometheus.yml", Configuration(std::stoi(http_port), std::stoi(other_http_port)));
  const int port = FreePort();
  Running prometheus("/usr/bin/prometheus",
                     {"--config.file=" + config, "--storage.tsdb.path=" + folder.path() + "/data",
                      absl::StrCat("--web.listen-address=127.0.0.1:", port)});

  std::vector<Expression> missing = PanelExpressions(kBoth);
  for (const Expression& annotation : AnnotationExpressions(kBoth)) missing.push_back(annotation);
  for (const Expression& rule : RuleExpressions()) missing.push_back(rule);
  ASSERT_GT(missing.size(), 80u);
  WaitUntil(
      [&] {
        std::vector<Expression> still;
        for (const Expression& expression : missing) {
          if (FiniteSeries(port, expression.text) <= 0) still.push_back(expression);
        }
        missing = still;
        return missing.empty();
      },
      absl::Seconds(40), absl::Milliseconds(300));
  for (const Expression& expression : missing) {
    ADD_FAILURE() << expression.where << " has no data: " << expression.text;
  }

  // The rules themselves were evaluated, and all members are scraped.
  int rules = 0;
  const Json groups = Ask(port, "/api/v1/rules");
  ASSERT_TRUE(groups.is_object());
  for (const Json& group : groups.at("data").at("groups")) {
    for (const Json& rule : group.at("rules")) {
      EXPECT_EQ(rule.at("health"), "ok") << rule.at("name") << " " << rule.value("lastError", "");
      EXPECT_NE(rule.value("state", ""), "firing") << rule.at("name");
      ++rules;
    }
  }
  EXPECT_EQ(rules, static_cast<int>(Rules().size()));
  EXPECT_EQ(FiniteSeries(port, "up{job=\"skein\",run=\"watched\",node=\"127.0.0.1\"} == 1"),
            5);  // And the coordinator.

  // Each node is told of once a run, and a build once a process.
  for (const char* run : {kRun, kOther}) {
    EXPECT_EQ(FiniteSeries(port, absl::StrFormat("skein_node_cpu_utilization_ratio{run=\"%s\",core=\"all\"}", run)), 1);
  }
  EXPECT_EQ(FiniteSeries(port, "skein_build_info{run=\"watched\",version=~\".+\",commit=~\".+\"}"), 5);
  EXPECT_EQ(FiniteSeries(port, "process_start_time_seconds{run=\"watched\"} > time() - 3600"), 5);
  // Both runs are in one panel, and the first one's page is where its link leads to.
  EXPECT_EQ(FiniteSeries(port, "skein_coordinator_run_env_steps{run=~\"watched|other\"}"), 2);
  EXPECT_EQ(
      FiniteSeries(port, absl::StrCat("skein_coordinator_status_page_info{run=\"watched\",url=\"http://127.0.0.1:",
                                      http_port, "/\"}")),
      1);

  // No label of a metric had to give way to one of its target.
  EXPECT_EQ(FiniteSeries(port, "{exported_role!=\"\"} or {exported_run!=\"\"}"), 0);

  other.Signal(SIGTERM);
  EXPECT_EQ(other.WaitForEnd(absl::Seconds(20)), 0);
  skein.Signal(SIGTERM);
  EXPECT_EQ(skein.WaitForEnd(absl::Seconds(20)), 0);
}

}  // namespace
}  // namespace skein
