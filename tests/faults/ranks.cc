// SPDX-License-Identifier: Apache-2.0
#include "tests/faults/ranks.h"

#include <csignal>
#include <fstream>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "tests/integration/run_files.h"
#include "tests/testing/http_get.h"
#include "tests/testing/wait_until.h"

namespace skein {

ElasticRun::ElasticRun(int min_ranks, absl::Duration barrier, absl::Duration collective, uint64_t interval)
    : cluster({"total_steps=1000000000", absl::StrCat("checkpoint.interval_steps=", interval),
               absl::StrCat("learner.min_ranks=", min_ranks),
               absl::StrCat("coordinator.barrier_timeout_seconds=", absl::ToDoubleSeconds(barrier)),
               absl::StrCat("learner.collective_timeout_seconds=", absl::ToDoubleSeconds(collective))}) {
  cluster.StartCoordinator();
}

void ElasticRun::Start(int number_of_actors) {
  rank_0 = StartRank(0);
  rank_1 = StartRank(1);
  for (int i = 0; i < number_of_actors; ++i) actors.push_back(cluster.StartActor());
}

std::unique_ptr<Running> ElasticRun::StartRank(int rank, const std::vector<std::string>& environment) const {
  return cluster.StartRank(rank, 2, environment);
}

v1::RunProgress ElasticRun::Progress() const {
  const auto status = cluster.Status();
  EXPECT_TRUE(status.ok()) << status.status();
  return status.ok() ? status->progress() : v1::RunProgress();
}

bool ElasticRun::WaitForIterations(uint64_t iterations) const {
  const uint64_t target = Progress().iteration() + iterations;
  return cluster.WaitForStatus(
      [&](const v1::StatusResponse& status) { return status.progress().iteration() >= target; });
}

bool ElasticRun::WaitForState(v1::RunState state) const {
  return cluster.WaitForStatus([&](const v1::StatusResponse& status) { return status.state() == state; });
}

double ElasticRun::Metric(const Running& rank, const std::string& name) {
  const std::string port = FirstMatch(rank.Output(), "learner listening data=\\S+ metrics=\\S+:(\\d+)");
  double value = -1;
  if (port.empty() ||
      !absl::SimpleAtod(FirstMatch(HttpGet(std::stoi(port), "/metrics").body, absl::StrCat("\n", name, " (\\S+)")),
                        &value)) {
    return -1;
  }
  return value;
}

double ElasticRun::Digest(const Running& rank) {
  const std::string port = FirstMatch(rank.Output(), "learner listening data=\\S+ metrics=\\S+:(\\d+)");
  uint64_t digest = 0;
  if (port.empty() ||
      !absl::SimpleHexAtoi(FirstMatch(HttpGet(std::stoi(port), "/digest").body, "([0-9a-f]{16})"), &digest)) {
    return -1;
  }
  return static_cast<double>(digest & ((uint64_t{1} << 53) - 1));
}

void ElasticRun::SignalActors(int signal_number) const {
  for (const auto& actor : actors) actor->Signal(signal_number);
}

void ElasticRun::ExpectEqualParameters(double before) const {
  EXPECT_TRUE(WaitUntil([&] { return Digest(*rank_0) != before && Digest(*rank_1) != before; }, absl::Minutes(1),
                        absl::Milliseconds(20)));
  SignalActors(SIGSTOP);
  double one = 0, other = 0;
  EXPECT_TRUE(WaitUntil(
      [&] {
        one = Digest(*rank_0);
        other = Digest(*rank_1);
        return one > 0 && one == other;
      },
      absl::Seconds(10), absl::Milliseconds(20)))
      << one << " and " << other;
  SignalActors(SIGCONT);
}

void ElasticRun::StopAndExpectClosedAccounts(const std::vector<Running*>& ranks) const {
  for (Running* rank : ranks) rank->Signal(SIGTERM);
  for (Running* rank : ranks) EXPECT_EQ(rank->WaitForEnd(absl::Seconds(30)), 0);
  const v1::StepAccount account = Account(cluster.run_folder());
  EXPECT_TRUE(Balances(account)) << account.ShortDebugString();
  EXPECT_EQ(account.pending(), 0u);
  const nlohmann::json manifest = ReadJson(NewestCheckpoint(cluster.run_folder()) + "/manifest.json");
  EXPECT_EQ(account.trained(), manifest.at("env_steps").get<uint64_t>());
}

void ElasticRun::ExpectWholeIterations() const {
  std::ifstream metrics(cluster.run_folder() + "/metrics.jsonl");
  uint64_t iterations = 0;
  for (std::string line; std::getline(metrics, line);) {
    const nlohmann::json iteration = nlohmann::json::parse(line);
    EXPECT_EQ(iteration.at("iteration").get<uint64_t>(), ++iterations);
    EXPECT_EQ(iteration.at("env_steps").get<uint64_t>(), kIterationSteps * iteration.at("iteration").get<uint64_t>());
  }
  EXPECT_GT(iterations, 0u);
}

}  // namespace skein
