// SPDX-License-Identifier: Apache-2.0
// What the processes of a run tell Prometheus while they work, asked with promtool and with Prometheus itself.
#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <thread>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "gmock/gmock.h"
#include "nlohmann/json.hpp"
#include "tests/testing/http_get.h"
#include "tests/testing/program.h"
#include "tests/testing/wait_until.h"

namespace skein {
namespace {

using Json = nlohmann::json;

// A run without an end: HalfCheetah, two actors.
class MetricsOfARun : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    // The driver's library of a node with two GPUs.
    setenv("LD_LIBRARY_PATH", FAKE_NVML_FOLDER, 1);
    runs_ = std::make_unique<ScratchFolder>();
    skein_ = std::make_unique<Running>(
        "skein", std::vector<std::string>{"train", "--config", "configs/half_cheetah_ppo.yaml", "--steps", "1000000000",
                                          "--runs-dir", runs_->path(), "--actors", "2", "--runners", "2"});
    const std::string port = skein_->WaitForOutput("metrics discovery: http://127\\.0\\.0\\.1:(\\d+)/");
    http_port_ = port.empty() ? 0 : std::stoi(port);
  }

  static void TearDownTestSuite() {
    skein_->Signal(SIGTERM);
    EXPECT_EQ(skein_->WaitForEnd(absl::Seconds(20)), 0);
    skein_.reset();
    runs_.reset();
  }

  // Port of each member's /metrics, by name. Waits until learner and both actors have joined.
  static std::map<std::string, int> Targets() {
    std::map<std::string, int> ports;
    EXPECT_TRUE(WaitUntil(
        [&] {
          ports.clear();
          const Json groups = Json::parse(HttpGet(http_port_, "/sd/prometheus").body, nullptr, false);
          if (!groups.is_array()) return false;
          for (const Json& group : groups) {
            const std::string address = group.at("targets").at(0);
            ports[group.at("labels").at("member")] = std::stoi(address.substr(address.rfind(':') + 1));
          }
          return ports.size() == 4;
        },
        absl::Minutes(1), absl::Milliseconds(50)));
    return ports;
  }

  static std::string Metrics(int port) { return HttpGet(port, "/metrics").body; }

  // Value of one series as written, e.g. `name{label="x"}`; -1 if it is not there.
  static double Value(const std::string& metrics, const std::string& series) {
    const size_t at = metrics.find("\n" + series + " ");
    return at == std::string::npos ? -1 : std::atof(metrics.c_str() + at + series.size() + 2);
  }

  static std::unique_ptr<ScratchFolder> runs_;
  static std::unique_ptr<Running> skein_;
  static int http_port_;
};

std::string ReadText(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return std::string(std::istreambuf_iterator<char>(file), {});
}

std::unique_ptr<ScratchFolder> MetricsOfARun::runs_;
std::unique_ptr<Running> MetricsOfARun::skein_;
int MetricsOfARun::http_port_ = 0;

TEST_F(MetricsOfARun, PassPromtool) {
  for (const auto& [member, port] : Targets()) {
    const std::string metrics = Metrics(port);
    EXPECT_FALSE(metrics.empty()) << member;
    std::string complaints;
    EXPECT_EQ(RunWithInput("promtool check metrics", metrics, &complaints), 0) << member << "\n" << complaints;
    EXPECT_EQ(complaints, "") << member;
  }
}

TEST_F(MetricsOfARun, StagesRiseWhileItTrains) {
  const std::map<std::string, std::vector<std::string>> stages = {
      {"actor", {"env_step", "inference", "build", "send", "wait"}},
      {"learner", {"receive", "admit", "update", "publish", "barrier"}}};
  for (const auto& [member, port] : Targets()) {
    const std::string role = member.substr(0, member.find('-'));
    if (stages.count(role) == 0) continue;
    for (const std::string& stage : stages.at(role)) {
      const std::string series = absl::StrFormat("skein_%s_stage_seconds_total{stage=\"%s\"}", role, stage);
      const double before = Value(Metrics(port), series);
      EXPECT_GE(before, 0) << member << " " << series;
      EXPECT_TRUE(WaitUntil([&, p = port] { return Value(Metrics(p), series) > before; }, absl::Seconds(30),
                            absl::Milliseconds(20)))
          << member << " " << series;
    }
  }
}

TEST_F(MetricsOfARun, CpuIsSampledWhileItTrains) {
  for (const auto& [member, port] : Targets()) {
    const std::string before = Metrics(port);
    EXPECT_GT(Value(before, "process_resident_memory_bytes"), 1e6) << member;
    EXPECT_TRUE(WaitUntil(
        [&, p = port] {
          return Value(Metrics(p), "process_cpu_seconds_total") > Value(before, "process_cpu_seconds_total");
        },
        absl::Seconds(30), absl::Milliseconds(20)))
        << member;
    const std::string after = Metrics(port);
  }
}

// HalfCheetah's reward is the sum of its two terms.
TEST_F(MetricsOfARun, TermsOfTheRewardReachFileTensorBoardAndPrometheus) {
  int learner = 0;
  for (const auto& [member, port] : Targets()) learner = member.rfind("learner", 0) == 0 ? port : learner;
  const auto series = [](const std::string& name) {
    return absl::StrCat("skein_learner_episode_metric{metric=\"", name, "\"}");
  };
  std::string metrics;
  ASSERT_TRUE(WaitUntil([&] { return Value(metrics = Metrics(learner), series("reward_ctrl")) < -1; }, absl::Minutes(1),
                        absl::Milliseconds(100)));  // -1 if it is not there; the first policies' costs are above 30.
  for (const char* const name : {"reward_forward", "x_velocity", "x_position"}) {
    EXPECT_THAT(metrics, testing::HasSubstr(series(name)));
  }
  std::string log, events;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(runs_->path())) {
    if (entry.path().filename() == "metrics.jsonl") log = ReadText(entry.path());
    if (entry.path().filename().string().rfind("events.out.tfevents.", 0) == 0) events = ReadText(entry.path());
  }
  log.erase(log.rfind('\n'));  // What is written after it may be torn.
  const Json line = Json::parse(log.substr(log.rfind('\n') + 1));
  const Json& terms = line.at("episode_metrics");
  EXPECT_NEAR(terms.at("reward_forward").get<double>() + terms.at("reward_ctrl").get<double>(),
              line.at("episode_return_mean").get<double>(), 0.1);
  // A decision takes 0.05 s, an episode 1,000 of them; the weight of the velocity is 1.
  EXPECT_NEAR(1000 * terms.at("x_velocity").get<double>(), terms.at("reward_forward").get<double>(), 0.1);
  for (const char* const tag :
       {"episode/reward_forward", "episode/reward_ctrl", "episode/x_velocity", "episode/x_position"}) {
    EXPECT_NE(events.find(tag), std::string::npos) << tag;
  }
}

// Four processes on one node: one of them tells of it.
TEST_F(MetricsOfARun, ANodesCoresAreToldOnce) {
  int tellers = 0;
  for (const auto& [member, port] : Targets()) {
    const std::string metrics = Metrics(port);
    const double all = Value(metrics, "skein_node_cpu_utilization_ratio{core=\"all\"}");
    if (all < 0) {
      EXPECT_EQ(metrics.find("skein_node_cpu"), std::string::npos) << member;
      EXPECT_EQ(metrics.find("skein_node_memory"), std::string::npos) << member;
      continue;
    }
    ++tellers;
    EXPECT_LE(all, 1) << member;
    EXPECT_GT(Value(metrics, "skein_node_memory_size_bytes"), 0) << member;
    for (unsigned core = 0; core < std::thread::hardware_concurrency(); ++core) {
      const double one = Value(metrics, absl::StrCat("skein_node_cpu_utilization_ratio{core=\"", core, "\"}"));
      EXPECT_GE(one, 0) << member << " core " << core;
      EXPECT_LE(one, 1) << member << " core " << core;
    }
  }
  EXPECT_EQ(tellers, 1);
}

TEST_F(MetricsOfARun, LearnersTellOfTheNodesGpus) {
  for (const auto& [member, port] : Targets()) {
    const std::string metrics = Metrics(port);
    const bool learner = member.rfind("learner", 0) == 0;
    EXPECT_EQ(Value(metrics, "skein_node_gpu_utilization_ratio{gpu=\"1\"}"), learner ? 0.75 : -1) << member;
    EXPECT_EQ(Value(metrics, "skein_node_gpu_memory_used_bytes{gpu=\"0\"}"), learner ? 100 : -1) << member;
  }
}

TEST_F(MetricsOfARun, PrometheusFindsAndScrapesEveryProcess) {
  const std::map<std::string, int> targets = Targets();
  const ScratchFolder folder;
  const std::string config = folder.Write("prometheus.yml", absl::StrFormat(R"(
global: {scrape_interval: 1s, scrape_timeout: 1s}
scrape_configs:
- job_name: skein
  http_sd_configs: [{url: "http://127.0.0.1:%d/sd/prometheus", refresh_interval: 1s}]
)",
                                                                            http_port_));
  const int port = FreePort();
  Running prometheus("/usr/bin/prometheus",
                     {"--config.file=" + config, "--storage.tsdb.path=" + folder.path() + "/data",
                      absl::StrCat("--web.listen-address=127.0.0.1:", port)});
  std::set<std::string> up;
  const auto all_up = [&] {
    up.clear();
    const std::string body = HttpGet(port, "/api/v1/query?query=up").body;
    const size_t begin = body.find('{'), end = body.rfind('}');  // It may come in chunks.
    if (begin == std::string::npos) return false;
    const Json answer = Json::parse(body.substr(begin, end - begin + 1), nullptr, false);
    if (!answer.is_object() || answer.value("status", "") != "success") return false;
    for (const Json& series : answer.at("data").at("result")) {
      if (series.at("value").at(1) == "1") up.insert(series.at("metric").at("member").get<std::string>());
    }
    return up.size() == targets.size();
  };
  EXPECT_TRUE(WaitUntil(all_up, absl::Minutes(1), absl::Milliseconds(100)));
  for (const auto& [member, metrics_port] : targets) EXPECT_EQ(up.count(member), 1u) << member;
}

}  // namespace
}  // namespace skein
