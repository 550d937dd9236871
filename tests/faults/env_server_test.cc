// SPDX-License-Identifier: Apache-2.0
// Row 41: an environment server is killed, ends, hangs, answers garbage, too much or numbers that are none.
#include <csignal>
#include <cstdio>
#include <fstream>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "tests/faults/faulty_training.h"
#include "tests/integration/run_files.h"
#include "tests/testing/scrape.h"
#include "tests/testing/wait_until.h"

namespace skein {
namespace {

constexpr char kServer[] = "exec:" FAULTY_SERVER;

// A training with two groups of four environments, each group in a server of its own, on one actor. The step timeout
// is longer than the pauses before a server is started again.
class ServedTraining {
 public:
  explicit ServedTraining(uint32_t iterations)
      : training_({"rollout.step_timeout_seconds=3", "coordinator.heartbeat_seconds=0.2"}, iterations),
        skein_(training_.Start("", {"--env", kServer}, {absl::StrCat("SKEIN_FAULTY_SERVER=", Order())})) {}

  Running& skein() { return *skein_; }
  std::string run() const { return training_.run(); }
  std::string Log() const { return training_.Log("actor-1"); }

  int Iterations() const {
    std::ifstream file(run() + "/metrics.jsonl");
    int lines = 0;
    for (std::string line; std::getline(file, line);) ++lines;
    return lines;
  }
  bool WaitForIterations(int more) const {
    const int until = Iterations() + more;
    return WaitUntil([&] { return Iterations() >= until; }, absl::Minutes(1), absl::Milliseconds(20));
  }
  double Metric(const std::string& name) const {
    const std::string port = FirstMatch(Log(), "actor joined member=\\S+ metrics=\\S+:(\\d+)");
    return port.empty() ? 0 : Scrape(std::stoi(port), "skein_actor_env_" + name);
  }
  // One of the servers does that in its next step.
  void Tell(const std::string& fault) const {
    const std::string draft = Order() + ".draft";
    std::ofstream(draft) << fault;
    EXPECT_EQ(std::rename(draft.c_str(), Order().c_str()), 0);
  }

 private:
  std::string Order() const { return training_.folder() + "/order"; }

  const FaultyTraining training_;
  const std::unique_ptr<Running> skein_;
};

struct Fault {
  const char* order;
  int lost_episodes, restarts;
  const char* line;  // In the log, for a user who looks for the mistake in a server.
};
// A server takes the four episodes of its group with it, a bad number costs the one that it is in.
constexpr Fault kFaults[] = {
    {"kill", 4, 1, "its server was ended by signal 9"},
    {"exit", 4, 1, "its server ended with exit code 3"},
    {"hang", 4, 1, "its server has not answered within 3 s (rollout.step_timeout_seconds)"},
    {"garbage", 4, 1, "its server sent bytes that are no message of skein.env.v1"},
    {"much", 4, 1, "its server sent 300000 bytes as one message"},
    {"nan", 1, 0, "number 1 of the observation is nan"},
    {"flags", 1, 0, "its flags are terminated 2"},
    {"fail", 1, 0, "its step failed"},
};

TEST(FaultRow41, EachFaultCostsItsEpisodesOnlyAndIsOneLineOfTheLog) {
  ServedTraining training(1'000'000);
  ASSERT_TRUE(training.WaitForIterations(2));
  EXPECT_EQ(training.Metric("lost_episodes_total"), 0);
  int lost = 0, restarts = 0;
  for (const Fault& fault : kFaults) {
    SCOPED_TRACE(fault.order);
    lost += fault.lost_episodes;
    restarts += fault.restarts;
    training.Tell(fault.order);
    ASSERT_TRUE(WaitUntil([&] { return training.Metric("lost_episodes_total") >= lost; }, absl::Seconds(30),
                          absl::Milliseconds(50)));
    ASSERT_TRUE(WaitUntil([&] { return training.Metric("server_restarts_total") >= restarts; }, absl::Seconds(30),
                          absl::Milliseconds(50)));
    ASSERT_TRUE(training.WaitForIterations(2));
    // The other group has lost nothing, nor has anything failed that nobody told to.
    EXPECT_EQ(training.Metric("lost_episodes_total"), lost);
    EXPECT_EQ(training.Metric("server_restarts_total"), restarts);
    EXPECT_EQ(Count(training.Log(), fault.line), 1) << training.Log();
  }
  EXPECT_EQ(training.Metric("failures_total"), 0);  // No group was built anew.
  EXPECT_EQ(Count(training.Log(), "episodes are truncated"), 5);
  EXPECT_EQ(Count(training.Log(), "its episode is truncated"), 3);
  EXPECT_EQ(Count(training.Log(), "its server has been started again"), 5);
  training.skein().Signal(SIGTERM);
  EXPECT_EQ(training.skein().WaitForEnd(), 0);
  const v1::StepAccount account = Account(training.run());
  EXPECT_TRUE(Balances(account)) << account.ShortDebugString();
  EXPECT_EQ(account.rejected(), 0u);
}

TEST(FaultRow41, TheRunReachesItsTarget) {
  constexpr uint32_t kIterations = 40;
  ServedTraining training(kIterations);
  for (const char* order : {"kill", "nan"}) {
    ASSERT_TRUE(training.WaitForIterations(2));
    training.Tell(order);
  }
  EXPECT_EQ(training.skein().WaitForEnd(absl::Minutes(2)), 0);
  EXPECT_EQ(Count(training.Log(), "was ended by signal 9"), 1) << training.Log();
  EXPECT_EQ(Count(training.Log(), "number 1 of the observation is nan"), 1);
  const v1::StepAccount account = Account(training.run());
  EXPECT_TRUE(Balances(account)) << account.ShortDebugString();
  EXPECT_EQ(account.trained(), kIterations * 1024);
  EXPECT_EQ(account.rejected(), 0u);
  EXPECT_EQ(account.lost(), 0u);
}

}  // namespace
}  // namespace skein
