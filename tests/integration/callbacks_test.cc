// SPDX-License-Identifier: Apache-2.0
// Runs with a Python callback: what it sees, adds, changes and stops, and what its failures cost.
#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/process/file.h"
#include "gmock/gmock.h"
#include "nlohmann/json.hpp"
#include "tests/env/external/built_example.h"
#include "tests/integration/run_files.h"
#include "tests/testing/http_get.h"
#include "tests/testing/program.h"
#include "tests/testing/wait_until.h"

namespace skein {
namespace {

using nlohmann::json;
using testing::ContainsRegex;
using testing::HasSubstr;

constexpr char kModule[] = R"(import os
import time

import skein_env


class Nothing(skein_env.Callback):
    pass


class Once(skein_env.Callback):
    """Does `what` in the iteration `at`."""

    def __init__(self, what, at=2):
        self.what, self.at = what, at

    def on_iteration(self, run, metrics):
        run.log("twice", 2 * metrics["iteration"])
        if metrics["iteration"] == self.at:
            getattr(self, self.what)(run)

    def slower(self, run):
        run.set("ppo.lr", 1e-4)

    def forbidden(self, run):
        run.set("ppo.minibatch_size", 64)

    def enough(self, run):
        run.stop("it is enough")

    def raises(self, run):
        raise ValueError("no such\nthing")

    def ends(self, run):
        os._exit(7)

    def hangs(self, run):
        time.sleep(1000)

    def sleeps(self, run):
        time.sleep(1.2)


class Story:  # No Callback: what counts is that it has the methods.
    def on_run_begin(self, run):
        self.file = open(run.folder / "story.txt", "a", buffering=1)
        print("begin", run.iteration, run.config["ppo.lr"], file=self.file)

    def on_iteration(self, run, metrics):
        run.log("odd.one/x", float("nan") if metrics["iteration"] == 1 else 0.5)

    def on_checkpoint(self, run, checkpoint):
        print("checkpoint", checkpoint.env_steps, (checkpoint.path / "DONE").exists(), len(checkpoint.digest), file=self.file)

    def on_run_end(self, run, state):
        print("end", run.env_steps, state, file=self.file)
)";

class CallbacksRun : public testing::Test {
 protected:
  CallbacksRun() {
    files_.Write("mine.py", kModule);
    setenv("PYTHONPATH", files_.path().c_str(), 1);
  }

  std::vector<std::string> Arguments(const std::vector<std::string>& more, const std::string& steps = "3072") const {
    std::vector<std::string> arguments = {"train", "--env", "CartPole-v1", "--envs", "8", "--envs-per-runner", "4"};
    arguments.insert(arguments.end(), {"--steps", steps, "--name", "run", "--no-eval", "--runs-dir", files_.path()});
    for (const char* const setting : {"rollout.steps_per_iteration=512", "ppo.minibatch_size=256", "ppo.lr=3e-4",
                                      "ppo.lr_schedule=constant", "checkpoint.interval_steps=1024"}) {
      arguments.insert(arguments.end(), {"--set", setting});
    }
    arguments.insert(arguments.end(), more.begin(), more.end());
    return arguments;
  }
  Ended Train(const std::vector<std::string>& more, int code = 0) const {
    Ended ended = RunToEnd("skein", Arguments(more), absl::Minutes(2));
    EXPECT_EQ(ended.code, code) << ended.out << ended.err;
    return ended;
  }
  std::string run() const { return files_.path() + "/run"; }
  std::vector<json> Lines() const {
    std::vector<json> lines;
    std::ifstream log(run() + "/metrics.jsonl");
    for (std::string line; std::getline(log, line);) lines.push_back(json::parse(line));
    return lines;
  }
  json Manifest() const { return ReadJson(NewestCheckpoint(run()) + "/manifest.json"); }

  const ScratchFolder files_;
};

TEST_F(CallbacksRun, MetricsAreInTheFilesOfTheRun) {
  Train({"--callbacks", "mine:Story"});
  const std::vector<json> lines = Lines();
  ASSERT_EQ(lines.size(), 6u);
  EXPECT_TRUE(lines[0]["callback"]["odd.one/x"].is_null());
  EXPECT_EQ(lines[1]["callback"], (json{{"odd.one/x", 0.5}}));
  EXPECT_EQ(
      files_.Read("run/story.txt"),
      "begin 0 0.0003\ncheckpoint 1024 True 16\ncheckpoint 2048 True 16\ncheckpoint 3072 True 16\nend 3072 finished\n");
  bool in_tensorboard = false;
  for (const auto& file : std::filesystem::directory_iterator(run())) {
    if (!absl::StartsWith(file.path().filename().string(), "events.")) continue;
    in_tensorboard = in_tensorboard || absl::StrContains(*ReadFile(file.path()), "callback/odd.one/x");
  }
  EXPECT_TRUE(in_tensorboard);
}

// Programs that `make install` has put elsewhere have no folder python beside them.
TEST_F(CallbacksRun, FindsThePackageOfAnInstalledSkein) {
  namespace fs = std::filesystem;
  const fs::path programs = std::getenv("SKEIN_BIN"), prefix = files_.path() + "/prefix";
  fs::create_directories(prefix / "bin");
  fs::create_directories(prefix / "share/skein");
  for (const char* const name : {"skein", "skein-coordinator", "skein-learner", "skein-actor"}) {
    fs::copy_file(programs / name, prefix / "bin" / name);
  }
  fs::create_directory_symlink(fs::canonical(programs / "python"), prefix / "share/skein/python");
  const Ended ended = RunToEnd(prefix / "bin/skein", Arguments({"--callbacks", "mine:Story"}));
  EXPECT_EQ(ended.code, 0) << ended.out << ended.err;
  EXPECT_THAT(files_.Read("run/story.txt"), HasSubstr("end 3072 finished"));
}

TEST_F(CallbacksRun, MetricsAreInPrometheusAndTheStatus) {
  Running skein("skein",
                Arguments({"--callbacks", "mine:Once?what=enough&at=0", "--set", "coordinator.heartbeat_seconds=0.1"},
                          "1000000000"));
  const std::string port = skein.WaitForOutput("metrics discovery: http://127\\.0\\.0\\.1:(\\d+)/");
  ASSERT_FALSE(port.empty());
  const int http = std::stoi(port);
  EXPECT_TRUE(WaitUntil(
      [&] {
        const json status = json::parse(HttpGet(http, "/api/status").body, nullptr, false);
        return status.is_object() && status["progress"].contains("callback_metrics") &&
               status["progress"]["callback_metrics"].contains("twice");
      },
      absl::Minutes(1)))
      << HttpGet(http, "/api/status").body;
  std::string metrics;
  const json groups = json::parse(HttpGet(http, "/sd/prometheus").body, nullptr, false);
  for (const json& group : groups) {
    const std::string address = group.at("targets").at(0);
    metrics += HttpGet(std::stoi(address.substr(address.rfind(':') + 1)), "/metrics").body;
  }
  EXPECT_THAT(metrics, ContainsRegex("skein_learner_callback_metric\\{metric=\"twice\"\\} [0-9]*[02468]\n"));
  EXPECT_THAT(metrics, ContainsRegex("skein_learner_callback_seconds_total [0-9.e-]*[1-9]"));
  skein.Signal(SIGTERM);
  EXPECT_EQ(skein.WaitForEnd(absl::Seconds(20)), 0);
}

TEST_F(CallbacksRun, ChangedSettingsAreInForceAlsoAfterAStop) {
  Train({"--callbacks", "mine:Once?what=slower"});
  const std::vector<json> lines = Lines();
  ASSERT_EQ(lines.size(), 6u);
  for (size_t i = 0; i < lines.size(); ++i) {
    EXPECT_NEAR(lines[i]["update"]["lr"].get<double>(), i < 2 ? 3e-4 : 1e-4, 1e-12) << i;
  }
  EXPECT_EQ(Manifest()["changed_settings"], (json{{"ppo.lr", 1e-4}}));
  const std::string digest = Digest(run());
  std::filesystem::remove_all(run());
  // The checkpoint is that of the iteration in which it was set.
  Train({"--callbacks", "mine:Once?what=slower", "--stop-at-step", "1024"});
  EXPECT_EQ(Manifest()["env_steps"], 1024);
  EXPECT_EQ(Manifest()["changed_settings"], (json{{"ppo.lr", 1e-4}}));
  // It is not set again, neither by this callback nor by none.
  Train({"--callbacks", "mine:Once?what=slower", "--stop-at-step", "2048"});
  Train({});
  EXPECT_NEAR(Lines().back()["update"]["lr"].get<double>(), 1e-4, 1e-12);
  EXPECT_EQ(Digest(run()), digest);
}

TEST_F(CallbacksRun, ThatDoNothingChangeNoBit) {
  Train({});
  const std::string digest = Digest(run());
  for (const char* const callback : {"mine:Nothing", "mine:Once?what=enough&at=0"}) {
    std::filesystem::remove_all(run());
    Train({"--callbacks", callback});
    EXPECT_EQ(Digest(run()), digest) << callback;
  }
  EXPECT_FALSE(Manifest().contains("changed_settings"));
}

// examples/callback, in C.
TEST_F(CallbacksRun, MayBeAProgram) {
  const std::string watch = BuiltExample("example_watch");
  const Ended stopped = Train({"--callbacks", absl::StrCat("exec:", watch, " 1")});
  EXPECT_THAT(stopped.out + stopped.err, ContainsRegex("example_watch 1 stops the run: the mean return is [0-9]+"));
  const std::vector<json> lines = Lines();
  ASSERT_FALSE(lines.empty());
  EXPECT_LT(lines.size(), 6u);
  EXPECT_EQ(lines.back()["callback"], (json{{"to_go", 0}}));
  std::filesystem::remove_all(run());
  Train({"--callbacks", absl::StrCat("exec:", watch, " 1000000")});
  ASSERT_EQ(Lines().size(), 6u);
  EXPECT_GT(Lines().back()["callback"]["to_go"].get<double>(), 900000);
  std::filesystem::remove_all(run());
  EXPECT_THAT(Train({"--callbacks", "exec:./no_such_program"}, 65).err, HasSubstr("callback exec:./no_such_program: "));
}

TEST_F(CallbacksRun, StopARunWithACheckpoint) {
  const Ended stopped = Train({"--callbacks", "mine:Once?what=enough&at=3"});
  EXPECT_THAT(stopped.out + stopped.err, HasSubstr("callback mine:Once?what=enough&at=3 stops the run: it is enough"));
  EXPECT_THAT(stopped.out, HasSubstr("stopped before the target"));
  EXPECT_EQ(Manifest()["env_steps"], 3 * 512);
  Train({"--callbacks", "mine:Once?what=enough&at=3"});
  EXPECT_EQ(Manifest()["env_steps"], 3072);
}

TEST_F(CallbacksRun, FailuresEndTheRunInOrderAndAreNamed) {
  for (const auto& [what, said] : std::vector<std::pair<std::string, std::string>>{
           {"raises",
            "on_iteration: ValueError: no such thing \\(.*/mine.py:32 in raises; .*/mine.py:20 in on_iteration\\)"},
           {"forbidden",
            "on_iteration: set.ppo.minibatch_size: cannot change during a run; .* \\(.*/mine.py:26 in forbidden\\)"},
           {"ends", "on_iteration: .* has ended, with exit code 7"},
           {"hangs", "on_iteration: .* has not answered for 1s \\(callbacks.timeout_seconds\\)"}}) {
    std::filesystem::remove_all(run());
    const Ended ended =
        Train({"--callbacks", absl::StrCat("mine:Once?what=", what), "--set", "callbacks.timeout_seconds=1"}, 65);
    EXPECT_THAT(ended.err, ContainsRegex(said)) << what;
    EXPECT_EQ(Manifest()["env_steps"], 1024) << what;
    EXPECT_EQ(Lines().size(), 2u) << what;
  }
  Train({});  // Goes on without it.
  EXPECT_EQ(Manifest()["env_steps"], 3072);
}

TEST_F(CallbacksRun, MistakesEndItBeforeTheFirstIteration) {
  EXPECT_THAT(Train({"--callbacks", "mine"}, 64).err, HasSubstr("want package.module:function"));
  EXPECT_THAT(Train({"--callbacks", "no_such_module:make"}, 65).err, HasSubstr("no module 'no_such_module'"));
  EXPECT_THAT(Train({"--callbacks", "mine:Other"}, 65).err, HasSubstr("has no function 'Other'"));
  EXPECT_TRUE(Lines().empty());
}

TEST_F(CallbacksRun, ASlowOneIsNamed) {
  const Ended ended = Train({"--callbacks", "mine:Once?what=sleeps"});
  EXPECT_THAT(ended.out + ended.err,
              ContainsRegex("mine:Once.what=sleeps: on_iteration took [0-9.]+ s; training waits"));
}

TEST_F(CallbacksRun, ReachAllRanks) {
  // Ranks with different learning rates would not have equal parameters, which ends a run.
  Train({"--callbacks", "mine:Once?what=slower", "--learners", "2"});
  EXPECT_NEAR(Lines().back()["update"]["lr"].get<double>(), 1e-4, 1e-12);
  EXPECT_EQ(Lines().back()["callback"]["twice"], 12);
  std::filesystem::remove_all(run());
  Train({"--callbacks", "mine:Once?what=enough", "--learners", "2"});
  EXPECT_EQ(Manifest()["env_steps"], 1024);
  std::filesystem::remove_all(run());
  EXPECT_THAT(Train({"--callbacks", "mine:Once?what=raises", "--learners", "2"}, 65).err,
              HasSubstr("ValueError: no such thing"));
  EXPECT_EQ(Manifest()["env_steps"], 1024);
}

TEST_F(CallbacksRun, TheExampleOfTheDocumentation) {
  const std::string page = *ReadFile("docs/callbacks.md");
  const size_t begin = page.find("```python\n") + 10;
  files_.Write("watch.py", page.substr(begin, page.find("```", begin) - begin));
  const Ended ended = Train({"--callbacks", "watch:Watch?target=15"});
  EXPECT_THAT(ended.out + ended.err, ContainsRegex("stops the run: the mean return is [0-9]+"));
  EXPECT_EQ(files_.Read("run/ended.txt"), "stopped");
  EXPECT_LT(Lines().back()["callback"]["to_go"].get<double>(), 0.001);
  EXPECT_THAT(files_.Read("run/log/learner.log"), HasSubstr("CartPole-v1, seed 1, from 0 env steps on"));
}

}  // namespace
}  // namespace skein
