// SPDX-License-Identifier: Apache-2.0
// Ports that are taken, free ones, IPv6, and two runs on one machine.
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "launch/status_client.h"
#include "tests/integration/cluster.h"
#include "tests/testing/wait_until.h"

namespace skein {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

#if defined(SKEIN_SANITIZED)
constexpr absl::Duration kAtOnce = absl::Seconds(10);  // Such programs take seconds to start.
#else
constexpr absl::Duration kAtOnce = absl::Seconds(2);
#endif
constexpr char kEndlessRun[] = "total_steps=1000000000";

TEST(FaultRow31, APortInUseEndsEachListenerAtOnce) {
  Cluster cluster({kEndlessRun});
  cluster.StartCoordinator();
  const std::string taken = cluster.address();
  const std::string port = taken.substr(taken.rfind(':') + 1);
  const ScratchFolder folder;
  const std::vector<std::string> learner = {"--coordinator", taken, "--run-dir", folder.path()};
  const auto with = [](std::vector<std::string> arguments, const std::string& flag, const std::string& address) {
    arguments.insert(arguments.end(), {flag, address});
    return arguments;
  };
  const std::vector<std::pair<std::string, std::vector<std::string>>> commands = {
      {"skein-coordinator", {"--listen", taken, "--http", "127.0.0.1:0"}},
      {"skein-coordinator", {"--listen", "127.0.0.1:0", "--http", taken}},
      {"skein-learner", with(learner, "--listen", taken)},
      {"skein-learner", with(learner, "--metrics", taken)},
      {"skein-actor", {"--coordinator", taken, "--metrics", taken}},
      {"skein", {"worker", "--address", taken, "--runners", "1", "--metrics", taken}},
      {"skein",
       {"head", "--config", "configs/cartpole_ppo.yaml", "--port", port, "--http-port", "0", "--runs-dir",
        folder.path()}},
      {"skein",
       {"head", "--config", "configs/cartpole_ppo.yaml", "--port", "0", "--http-port", port, "--runs-dir",
        folder.path()}},
  };
  for (const auto& [program, arguments] : commands) {
    // The shortest of three tries: what else the machine does makes each longer.
    absl::Duration shortest = absl::InfiniteDuration();
    for (int attempt = 0; attempt < 3 && shortest >= kAtOnce; ++attempt) {
      const Ended ended = RunToEnd(program, arguments, absl::Seconds(20));
      EXPECT_EQ(ended.code, 69) << program << ended.err;
      EXPECT_THAT(ended.err, HasSubstr(absl::StrCat("port ", port, " is in use"))) << program;
      EXPECT_THAT(ended.out, Not(HasSubstr("listening"))) << program;
      shortest = std::min(shortest, ended.wall_time);
    }
    EXPECT_LT(shortest, kAtOnce) << program;
  }
}

TEST(FaultRow31, APortThatAnIpv4ServerHasIsNotTakenByAnIpv6One) {
  Cluster cluster({kEndlessRun});
  cluster.StartCoordinator();
  const std::string port = cluster.address().substr(cluster.address().rfind(':') + 1);
  const Ended ended =
      RunToEnd("skein-coordinator", {"--insecure", "--listen", "[::]:" + port, "--http", "[::1]:0"}, absl::Seconds(20));
  EXPECT_EQ(ended.code, 69);
  EXPECT_THAT(ended.err, HasSubstr(absl::StrCat("port ", port, " is in use")));
}

// A run of its own, with port 0 for everything.
struct SmallRun {
  SmallRun(const std::string& config, const std::string& host, const std::string& id)
      : coordinator("skein-coordinator",
                    {"--config", config, "--listen", host + ":0", "--http", host + ":0", "--run-id", id}),
        address(coordinator.WaitForOutput("coordinator listening grpc=(\\S+)")),
        learner("skein-learner", {"--coordinator", address, "--run-dir", folder.path(), "--listen", host + ":0",
                                  "--metrics", host + ":0"}),
        actor("skein-actor", {"--coordinator", address, "--metrics", host + ":0"}) {}

  bool Trains(const std::string& id) const {
    const StatusClient client(address);
    return WaitUntil(
        [&] {
          const auto status = client.Get(absl::Seconds(2));
          return status.ok() && status->run_id() == id && status->members_size() == 2 &&
                 status->progress().policy_version() > 1;
        },
        absl::Minutes(1), absl::Milliseconds(50));
  }

  const ScratchFolder folder;
  Running coordinator;
  const std::string address;
  Running learner, actor;
};

TEST(FaultRow31, TwoRunsOnOneMachineDoNotMeet) {
  const Cluster configuration({kEndlessRun});
  SmallRun first(configuration.config_path(), "127.0.0.1", "first"),
      second(configuration.config_path(), "127.0.0.1", "second");
  EXPECT_NE(first.address, second.address);
  EXPECT_TRUE(first.Trains("first"));
  EXPECT_TRUE(second.Trains("second"));
  // Where members of one find the coordinator of another, they say so and end.
  first.coordinator.Kill();
  Running third("skein-coordinator", {"--config", configuration.config_path(), "--listen", first.address, "--http",
                                      "127.0.0.1:0", "--run-id", "third"});
  third.WaitForOutput("coordinator listening grpc=(\\S+)");
  EXPECT_EQ(first.learner.WaitForEnd(), 65);
  EXPECT_EQ(first.actor.WaitForEnd(), 65);
  EXPECT_THAT(first.actor.Output(), AllOf(HasSubstr("serves run third"), HasSubstr("belongs to run first")));
  EXPECT_TRUE(second.Trains("second"));
}

TEST(FaultRow31, OfTwoHeadsOnOneFolderTheSecondEndsAndTheFirstKeepsIt) {
  const ScratchFolder runs;
  const std::vector<std::string> arguments = {
      "head", "--config", "configs/cartpole_ppo.yaml", "--runs-dir", runs.path(), "--name", "run"};
  Running first("skein", arguments);
  first.WaitForOutput("(status page and metrics discovery)");
  const std::string configuration = runs.Read("run/config.yaml");
  std::vector<std::string> other = arguments;
  other.insert(other.end(), {"--seed", "7"});
  const Ended second = RunToEnd("skein", other);
  EXPECT_EQ(second.code, 69);
  EXPECT_THAT(second.err,
              HasSubstr(absl::StrCat("/run is in use by process ", first.pid(), "; stop it or give another --name")));
  EXPECT_EQ(runs.Read("run/config.yaml"), configuration);
  EXPECT_FALSE(first.ended());
  // Killed, it gives the folder up, once its learner has ended.
  first.Kill();
  Running third("skein", arguments);
  third.WaitForOutput("(status page and metrics discovery)");
  third.Signal(SIGTERM);
  EXPECT_EQ(third.WaitForEnd(), 0);
}

TEST(FaultRow31, Ipv6IsEnough) {
  const int probe = socket(AF_INET6, SOCK_STREAM, 0);
  sockaddr_in6 loopback = {};
  loopback.sin6_family = AF_INET6;
  loopback.sin6_addr = in6addr_loopback;
  const bool possible = bind(probe, reinterpret_cast<sockaddr*>(&loopback), sizeof(loopback)) == 0;
  close(probe);
  if (!possible) GTEST_SKIP() << "this machine has no ::1";
  const Cluster configuration({kEndlessRun});
  SmallRun run(configuration.config_path(), "[::1]", "run");
  EXPECT_THAT(run.address, HasSubstr("[::1]:"));
  EXPECT_THAT(run.learner.WaitForOutput("learner listening data=(\\S+)"), HasSubstr("[::1]:"));
  EXPECT_TRUE(run.Trains("run"));
}

}  // namespace
}  // namespace skein
