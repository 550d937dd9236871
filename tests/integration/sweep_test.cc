// SPDX-License-Identifier: Apache-2.0
// skein sweep with real trainings: what is killed goes on, and who pauses learns what one learns who does not.
#include <sys/stat.h>

#include <algorithm>
#include <cmath>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "base/process/file.h"
#include "gmock/gmock.h"
#include "tests/integration/run_files.h"
#include "tests/testing/http_get.h"
#include "tests/testing/program.h"
#include "tests/testing/wait_until.h"

namespace skein {
namespace {

using testing::HasSubstr;

class Sweep : public testing::Test {
 protected:
  std::vector<std::string> Arguments(const std::string& space, const std::string& steps,
                                     const std::vector<std::string>& more = {}) const {
    const std::string path = folder_.Write("space.yaml", space);
    std::vector<std::string> arguments = {"sweep",
                                          "--config",
                                          "configs/cartpole_ppo.yaml",
                                          "--space",
                                          path,
                                          "--runs-dir",
                                          folder_.path(),
                                          "--name",
                                          "s",
                                          "--steps",
                                          steps,
                                          "--slots",
                                          "2"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return arguments;
  }

  std::string sweep() const { return folder_.path() + "/s"; }

  // The fields of each line of sweep.csv, without its head.
  std::vector<std::vector<std::string>> Rows() const {
    std::vector<std::vector<std::string>> rows;
    for (const auto line : absl::StrSplit(ReadFile(sweep() + "/sweep.csv").value_or(""), '\n', absl::SkipEmpty())) {
      if (!absl::StartsWith(line, "trial,")) rows.push_back(absl::StrSplit(line, ','));
    }
    return rows;
  }

  // What a sweep of two slots tells Prometheus once a trial of its four is complete.
  static void ExpectMetrics(const std::string& port) {
    ASSERT_FALSE(port.empty());
    std::string metrics;
    // The value of a series as written; NaN: it is not there.
    const auto value = [&](const std::string& series) {
      const size_t at = metrics.find("\n" + series + " ");
      return at == std::string::npos ? NAN : std::atof(metrics.c_str() + at + series.size() + 2);
    };
    ASSERT_TRUE(WaitUntil(
        [&] {
          metrics = HttpGet(std::stoi(port), "/metrics").body;
          return value("skein_sweep_trials{state=\"complete\"}") >= 1;
        },
        absl::Minutes(2)));
    double trials = 0;
    for (const char* state : {"running", "paused", "complete", "stopped", "failed"}) {
      trials += value(absl::StrCat("skein_sweep_trials{state=\"", state, "\"}"));
    }
    EXPECT_GE(trials, 2) << metrics;
    EXPECT_LE(trials, 4) << metrics;
    EXPECT_EQ(value("skein_sweep_slots{use=\"busy\"}") + value("skein_sweep_slots{use=\"free\"}"), 2) << metrics;
    EXPECT_GT(value("skein_sweep_best_value"), 0) << metrics;  // A return of CartPole.
    EXPECT_GT(value("skein_sweep_core_seconds"), 0) << metrics;
    EXPECT_GE(value("skein_sweep_env_steps"), 10240) << metrics;  // Of the complete one.
    EXPECT_GE(value("skein_sweep_failures"), 0) << metrics;       // One, if the sweep saw it before it was killed.
  }

  // Trains again what a trial was, in one go.
  std::string DigestOfOneGo(const std::string& lr, const std::string& steps) const {
    const Ended ended = RunToEnd(
        "skein", {"train", "--config", "configs/cartpole_ppo.yaml", "--runs-dir", folder_.path(), "--name", "alone",
                  "--steps", steps, "--seed", "1001", "--runners", "1", "--no-eval", "--set", "ppo.lr=" + lr});
    EXPECT_EQ(ended.code, 0) << ended.out << ended.err;
    return Digest(folder_.path() + "/alone");
  }

  const ScratchFolder folder_;
};

TEST_F(Sweep, WhatIsKilledGoesOnAndNothingIsLostOrRunTwice) {
  const auto arguments =
      Arguments("sampler: {kind: grid}\nspace:\n  ppo.lr: [1e-3, 1e-4]\n  ppo.epochs: [2, 4]\ntest_seeds: 2\n", "10240",
                {"--set", "checkpoint.interval_steps=2048"});
  {
    Running first("skein", arguments);
    ASSERT_TRUE(WaitUntil([&] { return first.ended() || !NewestCheckpoint(sweep() + "/trial-00000-s0").empty(); },
                          absl::Minutes(2)));
    // A training first, and in a moment the sweep itself.
    if (const auto train = FindChild(first.pid(), "skein")) kill(*train, SIGKILL);
    WaitUntil([&] { return first.ended() || !NewestCheckpoint(sweep() + "/trial-00001-s0").empty(); },
              absl::Minutes(2));
    EXPECT_FALSE(first.ended()) << first.Output();
    first.Kill();
  }
  std::vector<std::string> watched = arguments;
  watched.insert(watched.end(), {"--metrics-listen", "127.0.0.1:0"});
  Running second("skein", watched);
  ExpectMetrics(second.WaitForOutput("page and metrics: http://127\\.0\\.0\\.1:(\\d+)/"));
  EXPECT_EQ(second.WaitForEnd(absl::Minutes(5)), 0);
  const std::string said = second.Output();
  EXPECT_THAT(said, HasSubstr("going on with "));
  const auto rows = Rows();
  ASSERT_EQ(rows.size(), 4u);
  for (const auto& row : rows) EXPECT_EQ(row[1], "complete") << row[0];
  EXPECT_THAT(said, HasSubstr("again with: skein train --config "));
  EXPECT_THAT(said, HasSubstr("best configuration: episode_return_mean "));
  EXPECT_THAT(said, HasSubstr("on 2 fresh seeds"));
  // Again: all is there.
  const Ended again = RunToEnd("skein", arguments);
  EXPECT_EQ(again.code, 0) << again.err;
  EXPECT_LT(again.wall_time, absl::Seconds(20));
}

TEST_F(Sweep, ItsPageOnAPublicAddressAsksForTheToken) {
  const std::string token = folder_.Write("token", "abcdefghijklmnopqrstuvwxyz012345");
  ASSERT_EQ(chmod(token.c_str(), 0600), 0);
  Running sweep("skein",
                Arguments("sampler: {kind: grid}\nspace:\n  ppo.lr: [1e-3, 1e-4]\ntest_seeds: 0\n", "40960",
                          {"--metrics-listen", "0.0.0.0:0"}),
                {"SKEIN_TOKEN_FILE=" + token});
  int port = 0;
  ASSERT_TRUE(absl::SimpleAtoi(sweep.WaitForOutput("page and metrics: http://[^:]+:(\\d+)/"), &port));
  EXPECT_EQ(HttpGet(port, "/metrics").status, 401);
  const HttpReply reply = HttpGet(port, "/metrics", "Authorization: Bearer abcdefghijklmnopqrstuvwxyz012345\r\n");
  EXPECT_EQ(reply.status, 200);
  EXPECT_THAT(reply.body, HasSubstr("skein_sweep_trials"));
  EXPECT_EQ(sweep.WaitForEnd(absl::Minutes(2)), 0);
  for (const auto& row : Rows()) EXPECT_EQ(row[1], "complete") << row[0];
}

TEST_F(Sweep, APromotedTrialLearnsWhatOneLearnsThatNeverPaused) {
  const Ended ended =
      RunToEnd("skein",
               Arguments("sampler: {kind: grid}\nscheduler: {kind: asha, min_steps: 2048, reduction: 2}\n"
                         "space:\n  ppo.lr: [1e-3, 1e-4]\ntest_seeds: 0\n",
                         "8192"),
               absl::Minutes(5));
  EXPECT_EQ(ended.code, 0) << ended.out << ended.err;
  EXPECT_THAT(ended.out, HasSubstr("goes on to 4096 env steps"));
  // Two at the first rung, one goes on to the second. There floor(1 / 2) = 0 go on: nobody is complete.
  int paused_at_4096 = 0;
  for (const auto& row : Rows()) paused_at_4096 += row[3] == "4096" ? 1 : 0;
  EXPECT_EQ(paused_at_4096, 1);
  for (const auto& row : Rows()) {
    if (row[3] != "4096") continue;
    // Its next session goes on to the end, and its schedules never knew of the pauses.
    const std::string run = absl::StrCat("trial-0000", row[0], "-s0");
    const std::string& lr = row[9];
    const Ended rest =
        RunToEnd("skein", {"train", "--config", sweep() + "/base.yaml", "--runs-dir", sweep(), "--name", run, "--seed",
                           "1001", "--runners", "1", "--no-eval", "--set", "ppo.lr=" + lr});
    EXPECT_EQ(rest.code, 0) << rest.out << rest.err;
    EXPECT_EQ(Digest(sweep() + "/" + run), DigestOfOneGo(lr, "8192"));
  }
}

TEST_F(Sweep, ACopyBeginsAsItsDonor) {
  const Ended ended =
      RunToEnd("skein",
               Arguments("sampler: {kind: random}\nscheduler: {kind: population, population: 2, quantile: 0.5, "
                         "interval_steps: 2048}\nspace:\n  ppo.lr: {log_uniform: [1e-4, 1e-2]}\ntest_seeds: 0\n",
                         "4096", {"--set", "checkpoint.keep=10"}),
               absl::Minutes(5));
  EXPECT_EQ(ended.code, 0) << ended.out << ended.err;
  const auto rows = Rows();
  ASSERT_EQ(rows.size(), 3u);
  // Trial 2 is a copy of 0 or 1, made at the only rung between.
  const auto digest = [&](const std::string& trial) {
    return ReadJson(absl::StrCat(sweep(), "/trial-0000", trial, "-s0/checkpoints/step_000000002048/manifest.json"))
        .value("digest", "");
  };
  EXPECT_EQ(digest("2").size(), 16u);
  EXPECT_EQ(digest("2"), digest(rows[2][8]));
  EXPECT_EQ(rows[2][1], "complete");
}

// The command that it prints trains the best configuration again, to the bit.
TEST_F(Sweep, ThePrintedCommandGivesTheBestTrialsDigest) {
  const Ended ended = RunToEnd("skein",
                               Arguments("sampler: {kind: grid}\nseeds_per_trial: 2\ntuning_seed: 77\n"
                                         "space:\n  ppo.lr: [1e-3, 1e-4]\ntest_seeds: 0\n",
                                         "4096", {"--json"}),
                               absl::Minutes(5));
  ASSERT_EQ(ended.code, 0) << ended.out << ended.err;
  const auto result = nlohmann::json::parse(ended.out);
  EXPECT_EQ(result["finished"], true);
  EXPECT_GT(result["slots_busy"], 0.0);
  EXPECT_LE(result["slots_busy"], 1.0);
  const std::string command = result["best"]["command"];
  // As a shell reads it: no word has a space or a quote of its own.
  std::vector<std::string> words = absl::StrSplit(absl::StrReplaceAll(command, {{"'", ""}}), ' ');
  ASSERT_EQ(words[0], "skein");
  words.erase(words.begin());
  const auto runs = std::find(words.begin(), words.end(), "--runs-dir");
  ASSERT_LT(runs - words.begin(), static_cast<ptrdiff_t>(words.size()) - 1) << command;
  *(runs + 1) = folder_.path() + "/again";
  words.push_back("--no-eval");
  const Ended again = RunToEnd("skein", words);
  ASSERT_EQ(again.code, 0) << again.out << again.err;
  EXPECT_EQ(Digest(folder_.path() + "/again/s-best"), Digest(result["best"]["run_directory"]));
}

TEST_F(Sweep, ATrialThatFailsThreeTimesIsMarkedAndTheSweepGoesOn) {
  // Each learner is killed at its first checkpoint.
  Running sweep("skein", Arguments("sampler: {kind: grid}\nspace:\n  ppo.lr: [1e-3, 1e-4]\ntest_seeds: 0\n", "2048"),
                {"SKEIN_FAULTS=checkpoint:kill@bytes=1"});
  EXPECT_EQ(sweep.WaitForEnd(absl::Minutes(5)), 70) << sweep.Output();  // None has a result.
  const auto rows = Rows();
  ASSERT_EQ(rows.size(), 2u);
  for (const auto& row : rows) {
    EXPECT_EQ(row[1], "failed");
    EXPECT_EQ(row[7], "3") << "failures";
  }
}

// Two slots, of which the other one's share has to be awaited.
TEST_F(Sweep, ATrainingWaitsForItsShareAndIsNotLost) {
  const std::string books = folder_.path() + "/books";
  const std::string cpus = absl::StrCat("resources.learner.cpus=", 0.6 * std::thread::hardware_concurrency());
  Running first("skein",
                {"train", "--config", "configs/cartpole_ppo.yaml", "--runs-dir", folder_.path(), "--name", "rival",
                 "--steps", "1e9", "--set", cpus, "--no-eval"},
                {"SKEIN_BOOKINGS=" + books});
  first.WaitForOutput("(run directory)");
  Running sweep("skein",
                {"sweep", "--config", "configs/cartpole_ppo.yaml", "--space",
                 folder_.Write("space.yaml", "sampler: {kind: grid}\nspace:\n  ppo.lr: [1e-3]\ntest_seeds: 0\n"),
                 "--runs-dir", folder_.path(), "--name", "s", "--steps", "2048", "--slots", "1", "--set", cpus},
                {"SKEIN_BOOKINGS=" + books});
  EXPECT_TRUE(WaitUntil(
      [&] { return absl::StrContains(folder_.Read("s/log/trial-00000-s0.log"), "waiting: resources.actor.cpus"); },
      absl::Minutes(1)));
  first.Kill();
  EXPECT_EQ(sweep.WaitForEnd(absl::Minutes(3)), 0) << sweep.Output();
  ASSERT_EQ(Rows().size(), 1u);
  EXPECT_EQ(Rows()[0][1], "complete");
  // More than there is for all slots is refused before anything starts.
  const Ended refused =
      RunToEnd("skein", {"sweep", "--config", "configs/cartpole_ppo.yaml", "--space", folder_.path() + "/space.yaml",
                         "--runs-dir", folder_.path(), "--name", "t", "--slots", "2", "--set", cpus});
  EXPECT_EQ(refused.code, 64);
  EXPECT_THAT(refused.err, HasSubstr("--slots 1 fits"));
  EXPECT_FALSE(std::filesystem::exists(folder_.path() + "/t"));
}

// As docs/tutorial.md has it, with few steps.
TEST_F(Sweep, TheTutorialsSweepComparesOnFreshSeeds) {
  const Ended ended = RunToEnd("skein",
                               {"sweep", "--config", "configs/cartpole_ppo.yaml", "--steps", "1024", "--space",
                                "configs/sweeps/cartpole_grid.yaml", "--runs-dir", folder_.path(), "--name", "s"},
                               absl::Minutes(5));
  EXPECT_EQ(ended.code, 0) << ended.out << ended.err;
  EXPECT_EQ(Rows().size(), 6u);
  EXPECT_THAT(ended.out, HasSubstr("difference: "));
}

// With a stand-in for srun, which notes what it is asked and does it.
TEST_F(Sweep, InASlurmJobEachTrainingIsAStep) {
  folder_.WriteScript("srun", "echo \"$@\" >>" + folder_.path() +
                                  "/steps; while [ \"${1#-}\" != \"$1\" ]; do shift; done; exec \"$@\"");
  Running sweep("skein",
                {"sweep", "--config", "configs/cartpole_ppo.yaml", "--space",
                 folder_.Write("space.yaml", "sampler: {kind: grid}\nspace:\n  ppo.lr: [1e-3, 1e-4]\ntest_seeds: 0\n"),
                 "--runs-dir", folder_.path(), "--name", "s", "--steps", "2048"},
                {"SLURM_JOB_ID=1", "SLURM_NTASKS=2", "SLURM_CPUS_PER_TASK=1",
                 absl::StrCat("PATH=", folder_.path(), ":", std::getenv("PATH"))});
  EXPECT_EQ(sweep.WaitForEnd(absl::Minutes(3)), 0);
  EXPECT_THAT(sweep.Output(), HasSubstr("2 slots of 1 core"));
  const std::string steps = folder_.Read("steps");
  EXPECT_EQ(std::count(steps.begin(), steps.end(), '\n'), 2);
  EXPECT_THAT(steps, HasSubstr("--exact --nodes=1 --ntasks=1 --cpus-per-task=1 "));
}

TEST_F(Sweep, SaysWhatIsMissingForOptunasSamplers) {
  // Python without packages.
  const std::string python = folder_.WriteScript("python", "exec python3 -S \"$@\"");
  Running sweep("skein", Arguments("sampler: {kind: tpe}\nmax_trials: 2\nspace:\n  ppo.lr: [1e-3, 1e-4]\n", "4096"),
                {"SKEIN_PYTHON=" + python});
  EXPECT_EQ(sweep.WaitForEnd(), 69);
  EXPECT_THAT(sweep.Output(), HasSubstr("sampler tpe: No module named 'optuna'; install it with: "));
}

// Trials that go on after a pause know when they were there: the callback reads what the sessions before have written.
TEST_F(Sweep, TheMetricOfACallbackIsSwept) {
  const Ended ended =
      RunToEnd("skein",
               Arguments("metric: callback.steps_to_return\ngoal: minimize\nsampler: {kind: grid}\n"
                         "scheduler: {kind: asha, min_steps: 4096, reduction: 2}\n"
                         "space:\n  ppo.lr: [1e-3, 3e-4, 1e-4, 3e-5]\ntest_seeds: 1\n",
                         "16384", {"--json", "--set", "callbacks.python=skein_env.steps_to:StepsTo?target=15"}),
               absl::Minutes(5));
  ASSERT_EQ(ended.code, 0) << ended.out << ended.err;
  // A random policy already makes more than 15 steps of CartPole.
  const auto result = nlohmann::json::parse(ended.out);
  EXPECT_GT(result["best"]["value"], 0);
  EXPECT_LT(result["best"]["value"], 4096);
  EXPECT_EQ(result["trials"]["failed"], 0);
  const Ended without =
      RunToEnd("skein", Arguments("metric: callback.x\nmax_trials: 1\nspace:\n  ppo.lr: [1e-3]\n", "4096"));
  EXPECT_EQ(without.code, 64);
  EXPECT_THAT(without.err, HasSubstr("space.yaml:1:9: metric: callback.x needs a callback"));
}

// Only an algorithm knows what its updates tell. A wrong name ends the sweep with the first iteration.
TEST_F(Sweep, AWrongMetricOfUpdatesEndsItBeforeATrainingIsDone) {
  Running sweep("skein", Arguments("max_trials: 4\nmetric: update.entrpy\nspace:\n  ppo.lr: [1e-3, 1e-4]\n", "1e9"));
  EXPECT_EQ(sweep.WaitForEnd(absl::Minutes(2)), 65);
  EXPECT_THAT(sweep.Output(), testing::ContainsRegex("space.yaml:2:9: metric: .*/metrics.jsonl has no 'update.entrpy'; "
                                                     "the nearest is 'update.entropy'"));
}

TEST_F(Sweep, RefusesBadFilesWithTheirPlace) {
  const Ended bad = RunToEnd("skein", Arguments("max_trials: 2\nspace:\n  ppo.learning_rate: [1e-3, 1e-4]\n", "4096"));
  EXPECT_EQ(bad.code, 64);
  EXPECT_THAT(bad.err, HasSubstr("space.yaml:3:3: unknown key 'ppo.learning_rate'; the nearest is 'ppo.lr'"));
  EXPECT_FALSE(std::filesystem::exists(sweep()));
}

}  // namespace
}  // namespace skein
