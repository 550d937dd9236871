// SPDX-License-Identifier: Apache-2.0
// People watch a run and take actors out of it: skein drain, status and top against real processes.
#include <algorithm>
#include <csignal>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/process/file.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/integration/cluster.h"
#include "tests/integration/run_files.h"
#include "tests/testing/wait_until.h"

namespace skein {
namespace {

using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

constexpr char kEndless[] = "total_steps=1000000000";

std::string AddressOf(Running* coordinator) { return FirstMatch(coordinator->Output(), "grpc=(\\S+)"); }

bool IsMember(const v1::StatusResponse& status, const std::string& id) {
  return std::any_of(status.members().begin(), status.members().end(),
                     [&](const v1::MemberStatus& member) { return member.member_id() == id; });
}

TEST(Drain, AnActorLeavesNothingIsLostAndTrainingGoesOn) {
  Cluster cluster({kEndless});
  cluster.StartCoordinator();
  cluster.StartLearner();
  const std::string address = AddressOf(&cluster.coordinator());
  const auto stays = cluster.StartActor();
  stays->WaitForOutput("(actor joined)");
  Running leaves("skein", {"worker", "--address", address, "--runners", "1"});
  ASSERT_TRUE(cluster.WaitForStatus([](const v1::StatusResponse& status) {
    return IsMember(status, "actor-2") && status.members(1).report().env_steps() > 0 &&
           status.progress().env_steps() > 5000;
  }));

  const Ended drain = RunToEnd("skein", {"drain", "actor-2", "--address", address, "--wait"});
  EXPECT_EQ(drain.code, 0) << drain.err;
  EXPECT_EQ(drain.out, "actor-2 finishes what it has begun, then leaves\nactor-2 has left\n");
  EXPECT_EQ(leaves.WaitForEnd(absl::Seconds(10)), 0);
  EXPECT_THAT(leaves.Output(), HasSubstr("drained: "));
  const auto after = cluster.Status();
  ASSERT_TRUE(after.ok()) << after.status();
  EXPECT_FALSE(IsMember(*after, "actor-2"));
  EXPECT_EQ(after->leaves(), 1u);
  EXPECT_EQ(after->expirations(), 0u);
  const uint64_t trained = after->progress().env_steps();
  EXPECT_TRUE(cluster.WaitForStatus(
      [&](const v1::StatusResponse& status) { return status.progress().env_steps() >= trained + 10000; }));

  stays->Signal(SIGTERM);
  EXPECT_EQ(stays->WaitForEnd(absl::Seconds(10)), 0);
  // While it still runs: at a stop the learner drops what belongs to the iteration that was begun.
  EXPECT_TRUE(cluster.WaitForStatus([&](const v1::StatusResponse& status) {
    return status.progress().account().collected() == StepsAtTheEnd(leaves) + StepsAtTheEnd(*stays);
  }));
  const auto status = cluster.Status();
  ASSERT_TRUE(status.ok()) << status.status();
  const v1::StepAccount& account = status->progress().account();
  EXPECT_TRUE(Balances(account)) << account.ShortDebugString();
  EXPECT_EQ(account.lost(), 0u);
  EXPECT_EQ(account.rejected(), 0u);
  cluster.learner().Signal(SIGTERM);
  EXPECT_EQ(cluster.learner().WaitForEnd(absl::Seconds(10)), 0);
}

TEST(Drain, MistakesEndWith64AndAnAbsentHeadWith69) {
  Cluster cluster({kEndless});
  cluster.StartCoordinator();
  cluster.StartLearner();
  const std::string address = AddressOf(&cluster.coordinator());
  Ended ended = RunToEnd("skein", {"drain", "actor-9", "--address", address});
  EXPECT_EQ(ended.code, 64);
  EXPECT_EQ(ended.err, "skein drain: there is no member \"actor-9\"; the run has no actors now\n");
  const auto actor = cluster.StartActor();
  actor->WaitForOutput("(actor joined)");
  ended = RunToEnd("skein", {"drain", "actor-9", "--address", address});
  EXPECT_EQ(ended.err, "skein drain: there is no member \"actor-9\"; the run's actors are actor-1\n");
  ended = RunToEnd("skein", {"drain", "learner-0", "--address", address});
  EXPECT_EQ(ended.code, 64);
  EXPECT_THAT(ended.err, HasSubstr("learner-0 is a learner, and only actors can be drained"));
  EXPECT_EQ(RunToEnd("skein", {"drain", "actor-1", "--address", "nonsense"}).code, 64);
  EXPECT_EQ(RunToEnd("skein", {"drain", "actor-1", "--address", address, "--timeout", "soon"}).code, 64);
  EXPECT_EQ(RunToEnd("skein", {"drain"}).code, 64);
  ended = RunToEnd("skein", {"drain", "actor-1", "--address", "127.0.0.1:1"});
  EXPECT_EQ(ended.code, 69);
  EXPECT_THAT(ended.err, StartsWith("skein drain: no coordinator answers at 127.0.0.1:1; `skein train`"));
  // One that cannot answer: it is asked to leave and stays.
  actor->Signal(SIGSTOP);
  ended = RunToEnd("skein", {"drain", "actor-1", "--address", address, "--wait", "--timeout", "100ms"});
  EXPECT_EQ(ended.code, 69);
  EXPECT_EQ(ended.err, "skein drain: actor-1 is asked to leave and is there still after 100ms\n");
  ended = RunToEnd("skein", {"status", "--address", address});
  EXPECT_THAT(ended.out, HasSubstr(" draining "));
}

// Two runs at once: each says its own address.
TEST(Top, ARunSaysTheCommandThatWatchesIt) {
  const ScratchFolder folder;
  const std::vector<std::string> shared = {"train",      "--env",      "CartPole-v1", "--steps",
                                           "1000000000", "--runs-dir", folder.path(), "--runners",
                                           "1",          "--no-eval",  "--name"};
  std::vector<std::unique_ptr<Running>> runs;
  for (const std::string name : {"first", "second"}) {
    std::vector<std::string> arguments = shared;
    arguments.push_back(name);
    runs.push_back(std::make_unique<Running>("skein", arguments));
  }
  for (const std::string name : {"first", "second"}) {
    Running& run = *runs[name == "first" ? 0 : 1];
    const std::string line = run.WaitForOutput("(watch it with: \\S*skein top.*)\n");
    const std::string watch = line.substr(std::min(line.size(), line.find(" top") + 4));
    std::vector<std::string> arguments = {"status", "--json"};
    for (const absl::string_view word : absl::StrSplit(watch, ' ', absl::SkipEmpty())) arguments.emplace_back(word);
    const Ended status = RunToEnd("skein", arguments);
    EXPECT_EQ(status.code, 0) << status.err;
    EXPECT_THAT(status.out, HasSubstr(name));
  }
  for (const auto& run : runs) run->Signal(SIGTERM);
  for (const auto& run : runs) EXPECT_EQ(run->WaitForEnd(), 0);
}

TEST(Drain, AnActorOfSkeinTrainStaysAway) {
  const ScratchFolder folder;
  const int port = FreePort();
  Running train("skein", {"train", "--config", "configs/cartpole_ppo.yaml", "--steps", "1000000000", "--runs-dir",
                          folder.path(), "--name", "run", "--runners", "2", "--actors", "2", "--port",
                          absl::StrCat(port), "--no-eval", "--set", "coordinator.heartbeat_seconds=0.2"});
  train.WaitForOutput("(training  )");
  const std::string address = absl::StrCat("127.0.0.1:", port);
  const Ended drain = RunToEnd("skein", {"drain", "actor-1", "--address", address, "--wait"});
  EXPECT_EQ(drain.code, 0) << drain.err;
  // By the name that it was drained by; its log may have another number.
  train.WaitForOutput("(actor-1 was drained and stays away)");
  const Ended status = RunToEnd("skein", {"status", "--address", address});
  EXPECT_EQ(status.code, 0) << status.err;
  EXPECT_THAT(status.out, HasSubstr("actors 1 live"));
  EXPECT_THAT(status.out, HasSubstr(" lost 0"));
  EXPECT_THAT(status.out, HasSubstr("\nactor-2 "));
  train.Signal(SIGTERM);
  EXPECT_EQ(train.WaitForEnd(), 0);
  EXPECT_EQ(Account(folder.path() + "/run").rejected(), 0u);
}

TEST(Top, PrintsFramesWhereThereIsNoTerminal) {
  Cluster cluster({kEndless});
  cluster.StartCoordinator();
  cluster.StartLearner();
  const std::string address = AddressOf(&cluster.coordinator());
  const auto actor = cluster.StartActor();
  ASSERT_TRUE(
      cluster.WaitForStatus([](const v1::StatusResponse& status) { return status.progress().env_steps() > 5000; }));
  const Ended top = RunToEnd("skein", {"top", "--address", address, "--count", "2", "--interval", "300ms"});
  EXPECT_EQ(top.code, 0) << top.err;
  EXPECT_GE(top.wall_time, absl::Milliseconds(300));
  const size_t second = top.out.find("\n\n", top.out.find("learner-0 "));
  ASSERT_NE(second, std::string::npos) << top.out;
  for (const std::string& frame : {top.out.substr(0, second), top.out.substr(second)}) {
    EXPECT_THAT(frame, HasSubstr("ETA"));
    EXPECT_THAT(frame, HasSubstr("\nactor-1      learner-0 "));
    EXPECT_THAT(frame, HasSubstr("  wait "));
    EXPECT_THAT(frame, HasSubstr("update "));
  }
  EXPECT_EQ(top.out.find('\x1b'), std::string::npos);
  EXPECT_EQ(RunToEnd("skein", {"top", "--address", "127.0.0.1:1"}).code, 69);
  EXPECT_EQ(RunToEnd("skein", {"top", "--address", address, "--interval", "often"}).code, 64);
  // An endless one ends on a signal.
  Running endless("skein", {"top", "--address", address, "--interval", "1h"});
  endless.WaitForOutput("(MEMBER)");
  endless.Signal(SIGINT);
  EXPECT_EQ(endless.WaitForEnd(absl::Seconds(10)), 0);
}

TEST(Drain, AfterItsLastActorARunSaysThatItWaits) {
  const ScratchFolder runs;
  Running skein(
      "skein", {"train", "--config", "configs/cartpole_ppo.yaml", "--runs-dir", runs.path(), "--name", "run", "--steps",
                "1000000000", "--actors", "1", "--runners", "1", "--no-eval", "--set", "logging.interval_seconds=1"});
  ASSERT_TRUE(WaitUntil([&] { return !NewestCheckpoint(runs.path() + "/run").empty(); }, absl::Minutes(1)));
  // Nobody was there before.
  EXPECT_THAT(runs.Read("run/log/coordinator.log"), Not(HasSubstr("earlier coordinator")));
  const auto learner = FindChild(skein.pid(), "skein-learner");
  ASSERT_TRUE(learner);
  const std::string arguments = ReadFile(absl::StrCat("/proc/", *learner, "/cmdline")).value_or("");
  const std::vector<std::string> words = absl::StrSplit(arguments, '\0');
  const auto flag = std::find(words.begin(), words.end(), "--coordinator");
  ASSERT_LT(flag + 1, words.end());
  EXPECT_EQ(RunToEnd("skein", {"drain", "actor-1", "--address", *(flag + 1), "--wait"}).code, 0);
  EXPECT_EQ(skein.WaitForOutput("no actor is left on this machine; add one with: \\S*skein worker --address (\\S+)"),
            *(flag + 1));
  skein.WaitForOutput("(waiting for data .*skein worker --address)");
  Running worker("skein", {"worker", "--address", *(flag + 1), "--runners", "1"});
  const size_t before = skein.Output().size();
  EXPECT_TRUE(
      WaitUntil([&] { return skein.Output().find("training ", before) != std::string::npos; }, absl::Minutes(1)));
  skein.Signal(SIGTERM);
  EXPECT_EQ(skein.WaitForEnd(), 0);
}

}  // namespace
}  // namespace skein
