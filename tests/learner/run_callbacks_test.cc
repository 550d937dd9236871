// SPDX-License-Identifier: Apache-2.0
#include "learner/run/run_callbacks.h"

#include <cmath>
#include <cstdlib>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/config/config.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace skein {
namespace {

using nlohmann::json;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr char kAll[] = R"({"has": ["on_run_begin", "on_iteration", "on_checkpoint", "on_run_end"]})";

// Callbacks of a process that reads a line and gives the next of these answers; after the last it ends.
class ScriptedCallbacks : public testing::Test {
 protected:
  ScriptedCallbacks() {
    const auto loaded = LoadRunConfig("", {"env.id=CartPole-v1", "ppo.lr_schedule=constant"}, 2);
    EXPECT_TRUE(loaded.ok()) << loaded.status();
    config_ = *loaded;
  }

  RunCallbacks Make(const std::vector<std::string>& answers, const std::string& then = "") {
    std::string script;
    for (const std::string& answer : answers) absl::StrAppend(&script, "read -r line; echo '", answer, "'; ");
    RunCallbacks::Options options;
    options.name = "mine:make";
    options.command = {"sh", "-c", script + then};
    options.folder = "runs/x";
    options.timeout = absl::Seconds(20);
    options.warn = [this](const std::string& text) { warnings_.push_back(text); };
    options.slow_call = slow_call_;
    if (!timeout_.has_value()) return RunCallbacks(config_, options);
    options.timeout = *timeout_;
    return RunCallbacks(config_, options);
  }

  static json Line(int iteration) { return {{"iteration", iteration}, {"env_steps", 100 * iteration}}; }

  v1::RunConfig config_;
  std::vector<std::string> warnings_;
  std::optional<absl::Duration> timeout_;
  absl::Duration slow_call_ = absl::Seconds(1);
};

TEST_F(ScriptedCallbacks, AddMetrics) {
  RunCallbacks callbacks = Make({kAll, R"({"metrics": {"a": 1.5, "b": null}})", "{}"});
  callbacks.Begin({});
  const auto metrics = callbacks.Iteration(Line(1));
  ASSERT_EQ(metrics.size(), 2u);
  EXPECT_EQ(metrics.at("a"), 1.5);
  EXPECT_TRUE(std::isnan(metrics.at("b")));
  EXPECT_THAT(callbacks.Iteration(Line(2)), IsEmpty());
  EXPECT_TRUE(callbacks.status().ok()) << callbacks.status();
  EXPECT_FALSE(callbacks.stops());
  EXPECT_GT(callbacks.spent(), absl::ZeroDuration());
}

TEST_F(ScriptedCallbacks, ChangeSettingsOnTopOfThoseBefore) {
  RunCallbacks callbacks = Make({R"({"has": ["on_iteration"], "set": {"ppo.clip": 0.1}})",
                                 R"({"set": {"ppo": {"lr": 0.001}}})", R"({"set": {"ppo.clip": 0.3}})"});
  callbacks.Begin({.changes = R"({"ppo.epochs": 3})"});
  std::string changes = callbacks.TakeChanges(R"({"ppo.epochs": 3})");
  EXPECT_EQ(json::parse(changes), json::parse(R"({"ppo.clip": 0.1, "ppo.epochs": 3})"));
  callbacks.Iteration(Line(1));
  callbacks.Iteration(Line(2));
  changes = callbacks.TakeChanges(changes);
  EXPECT_EQ(json::parse(changes), json::parse(R"({"ppo.clip": 0.3, "ppo.epochs": 3, "ppo.lr": 0.001})"));
  EXPECT_EQ(callbacks.TakeChanges(changes), changes);
  EXPECT_TRUE(callbacks.status().ok()) << callbacks.status();
}

TEST_F(ScriptedCallbacks, MayNotChangeEverything) {
  RunCallbacks callbacks =
      Make({kAll, R"({"set": {"ppo.minibatch_size": 64}, "set_at": "mine.py:7 in on_iteration"})"});
  callbacks.Begin({});
  callbacks.Iteration(Line(1));
  EXPECT_TRUE(callbacks.stops());
  EXPECT_EQ(callbacks.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(callbacks.status().message()),
              testing::MatchesRegex("callback mine:make, on_iteration: set.ppo.minibatch_size: cannot change during a "
                                    "run; .* \\(mine.py:7 in on_iteration\\)"));
  EXPECT_EQ(callbacks.TakeChanges(""), "");
}

TEST_F(ScriptedCallbacks, StopARun) {
  RunCallbacks callbacks = Make({kAll, R"({"stop": "it is good enough"})", "{}"});
  callbacks.Begin({});
  callbacks.Iteration(Line(1));
  EXPECT_TRUE(callbacks.stops());
  EXPECT_TRUE(callbacks.status().ok());
  EXPECT_THAT(warnings_, ElementsAre("callback mine:make stops the run: it is good enough"));
  callbacks.End("stopped");
  EXPECT_TRUE(callbacks.status().ok()) << callbacks.status();
}

TEST_F(ScriptedCallbacks, ThatThrowAreNotCalledAgain) {
  RunCallbacks callbacks = Make({kAll, R"x({"error": "ValueError: no (mine.py:12 in on_iteration)"})x"});
  callbacks.Begin({});
  callbacks.Iteration(Line(1));
  EXPECT_EQ(callbacks.status().message(),
            "callback mine:make, on_iteration: ValueError: no (mine.py:12 in on_iteration)");
  EXPECT_TRUE(callbacks.stops());
  callbacks.Iteration(Line(2));
  callbacks.Checkpoint("c", "d", 1);
  callbacks.Begin({});
  callbacks.End("failed");
  EXPECT_THAT(std::string(callbacks.status().message()), HasSubstr("ValueError"));
}

TEST_F(ScriptedCallbacks, ThatEndHangOrAnswerNonsenseAreAnError) {
  RunCallbacks ends = Make({kAll}, "read -r line; exit 7");
  ends.Begin({});
  ends.Iteration(Line(1));
  EXPECT_THAT(std::string(ends.status().message()), HasSubstr("sh has ended, with exit code 7"));
  RunCallbacks nonsense = Make({kAll, "[]"});
  nonsense.Begin({});
  nonsense.Iteration(Line(1));
  EXPECT_THAT(std::string(nonsense.status().message()), HasSubstr("no JSON object"));
  timeout_ = absl::Milliseconds(100);
  RunCallbacks hangs = Make({kAll}, "sleep 100");
  hangs.Begin({});
  hangs.Iteration(Line(1));
  EXPECT_THAT(std::string(hangs.status().message()),
              HasSubstr("on_iteration: sh has not answered for 100ms (callbacks.timeout_seconds)"));
}

TEST_F(ScriptedCallbacks, WithoutMethodsHaveNoProcess) {
  RunCallbacks callbacks = Make({R"({"has": []})"});
  callbacks.Begin({});
  callbacks.Begin({});  // Not again.
  EXPECT_THAT(callbacks.Iteration(Line(1)), IsEmpty());
  callbacks.Checkpoint("c", "d", 1);
  callbacks.End("finished");
  EXPECT_TRUE(callbacks.status().ok()) << callbacks.status();
}

TEST_F(ScriptedCallbacks, AreToldOfEachCheckpointOnce) {
  // A second call would find that the process has ended.
  RunCallbacks callbacks = Make({R"({"has": ["on_checkpoint"]})", "{}"});
  callbacks.Begin({.checkpoint = "a"});
  callbacks.Checkpoint("a", "digest", 1);
  callbacks.Checkpoint("b", "digest", 2);
  callbacks.Checkpoint("b", "digest", 2);
  EXPECT_TRUE(callbacks.status().ok()) << callbacks.status();
}

TEST_F(ScriptedCallbacks, ThatAreSlowAreNamedOnce) {
  std::vector<std::string> answers = {kAll};
  for (int i = 0; i < 30; ++i) answers.push_back("{}");
  RunCallbacks callbacks = Make(answers);  // Nothing else happens between the calls: they take all the time.
  callbacks.Begin({});
  for (int i = 1; i <= 30; ++i) callbacks.Iteration(Line(i));
  ASSERT_EQ(warnings_.size(), 1u);
  EXPECT_THAT(warnings_[0],
              testing::MatchesRegex("callback mine:make: on_iteration takes .* ms of each iteration, .* % "
                                    "of the time; training waits for it"));
}

TEST_F(ScriptedCallbacks, ThatAreSlowOnceTheRunHasEndedAreNamedToo) {
  slow_call_ = absl::Milliseconds(20);
  RunCallbacks callbacks = Make({kAll}, "read -r line; sleep 0.05; echo '{}'");
  callbacks.Begin({});
  callbacks.End("finished");
  ASSERT_EQ(warnings_.size(), 1u);
  EXPECT_THAT(warnings_[0], testing::MatchesRegex("callback mine:make: on_run_end took 0.. s; training waits for it"));
}

TEST_F(ScriptedCallbacks, ThatCannotBeStartedSayHow) {
  RunCallbacks::Options options = CallbackOptions(config_, "runs/x");
  EXPECT_TRUE(options.name.empty());
  EXPECT_FALSE(RunCallbacks(config_, options).configured());
  config_.mutable_callbacks()->set_python("mine:make");
  config_.mutable_env()->mutable_external()->set_python("no-such-python");
  const char* const set = std::getenv("SKEIN_PYTHON");
  const std::string before = set == nullptr ? "" : set;
  setenv("SKEIN_PYTHON", "/another/python", 1);
  RunCallbacks callbacks(config_, CallbackOptions(config_, "runs/x"));
  config_.mutable_env()->mutable_external()->set_python("python3");
  EXPECT_EQ(CallbackOptions(config_, "runs/x").command.front(), "/another/python");
  setenv("SKEIN_PYTHON", before.c_str(), 1);  // Empty is as good as not set.
  EXPECT_TRUE(callbacks.configured());
  callbacks.Begin({});
  EXPECT_THAT(std::string(callbacks.status().message()),
              HasSubstr("callback mine:make: no-such-python: no such program (env.external.python"));
}

}  // namespace
}  // namespace skein
