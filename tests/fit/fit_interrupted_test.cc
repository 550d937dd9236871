// SPDX-License-Identifier: Apache-2.0
// A skein fit that is stopped or killed where it is awkward, and goes on.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "base/process/file.h"
#include "tests/fit/text_file.h"
#include "tests/testing/program.h"
#include "tests/testing/scrape.h"
#include "tests/testing/wait_until.h"

namespace skein {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using Json = nlohmann::json;

// `count` different lines of `keys` keys each.
std::string WriteLines(const std::string& folder, int count, int keys) {
  std::string text;
  for (int i = 0; i < count; ++i) {
    for (int key = 0; key < keys; ++key) absl::StrAppend(&text, (i + key * (i % 59 + 1) + key * key / 7) % 60, " ");
    text += "\n";
  }
  return WriteText(folder + "/lines.txt", text);
}

std::vector<std::string> Fit(const std::string& data, const std::string& run,
                             const std::vector<std::string>& settings) {
  std::vector<std::string> all = {"fit", "--data", data, "--run-dir", run, "--port", "-1"};
  for (const std::string& setting : settings) all.insert(all.end(), {"--set", setting});
  return all;
}

TEST(FitInterrupted, WhileItChoosesLimitsItEndsAndChoosesThemWhenItIsCalledAgain) {
  const std::string folder = FreshFolder("stopped-choosing"), data = WriteLines(folder, 3000, 400);
  const auto arguments = [&](const std::string& run) {
    return Fit(data, folder + run,
               {"train.epochs=1", "data.holdout=0.9", "detect.known_counts=true", "train.threads=1"});
  };
  const Ended straight = RunToEnd("skein", arguments("/straight"));
  ASSERT_EQ(straight.code, 0) << straight.err;
  const std::string digest = FirstMatch(straight.out, "checkpoint \\S+, digest ([0-9a-f]+)");
  ASSERT_NE(digest, "");
  for (const std::string learners : {"1", "2"}) {
    std::vector<std::string> all = arguments("/stopped-" + learners);
    all.insert(all.end(), {"--learners", learners});
    Running fit("skein", all);
    fit.WaitForOutput("(epoch 1 of 1: )");
    fit.Signal(SIGTERM);
    EXPECT_EQ(fit.WaitForEnd(), 75);
    EXPECT_THAT(fit.Output(),
                HasSubstr("skein fit: stopped on request while the limits of `skein detect` were chosen\n"));
    EXPECT_THAT(fit.Output(), Not(HasSubstr("lost")));
    const Ended again = RunToEnd("skein", all);
    EXPECT_EQ(again.code, 0) << again.err;
    EXPECT_THAT(again.out, HasSubstr("goes on from "));
    EXPECT_EQ(FirstMatch(again.out, "checkpoint \\S+, digest ([0-9a-f]+)"), digest);
  }
}

// Between the epoch's last step, after which a checkpoint is due, and the end of the held-out part.
TEST(FitInterrupted, KilledBeforeAnEpochsEvaluationItLosesNoLineOfItsLastStep) {
  const std::string folder = FreshFolder("killed-evaluating"), data = WriteLines(folder, 3000, 400),
                    run = folder + "/run";
  const std::vector<std::string> arguments = Fit(data, run,
                                                 {"train.epochs=2", "data.holdout=0.9", "train.batch_size=128",
                                                  "logging.log_interval=1", "checkpoint.save_interval=1"});
  Running fit("skein", arguments);
  int port = 0, steps = 0;
  ASSERT_TRUE(absl::SimpleAtoi(fit.WaitForOutput("metrics at http://127\\.0\\.0\\.1:(\\d+)/metrics"), &port));
  ASSERT_TRUE(absl::SimpleAtoi(FirstMatch(fit.WaitForOutput("(data: \\d+ sequences)"), "(\\d+)"), &steps));
  steps = (steps + 127) / 128;  // Of an epoch.
  ASSERT_TRUE(WaitUntil([&] { return Scrape(port, "skein_fit_steps") >= steps; }, absl::Minutes(1)));
  absl::SleepFor(absl::Milliseconds(100));  // A checkpoint would be written by now.
  fit.Signal(SIGKILL);
  EXPECT_EQ(fit.WaitForEnd(), 128 + SIGKILL);
  EXPECT_THAT(fit.Output(), Not(HasSubstr("epoch 1 of 2: "))) << "too late to tell";
  const Ended again = RunToEnd("skein", arguments);
  ASSERT_EQ(again.code, 0) << again.err;
  uint64_t step = 0;
  for (const auto text : absl::StrSplit(*ReadFile(run + "/metrics.jsonl"), '\n', absl::SkipEmpty())) {
    const Json line = Json::parse(text);
    EXPECT_EQ(line.at("iteration"), ++step);
    EXPECT_TRUE(line.contains("loss") && line.contains("lr")) << text;
    EXPECT_EQ(line.contains("held_out_loss"), step % static_cast<uint64_t>(steps) == 0) << text;
  }
  EXPECT_EQ(step, 2 * steps);
}

// The time left is that of the steps since it went on, not of those before, which took this process no time.
TEST(FitInterrupted, InMidEpochItsEtaIsThatOfTheRestWhenItGoesOn) {
  const std::string folder = FreshFolder("eta"), data = WriteLines(folder, 12000, 30);
  const std::vector<std::string> arguments = Fit(
      data, folder + "/run", {"model.hidden=64", "train.epochs=1", "train.batch_size=2", "train.lr_schedule=constant"});
  const auto port_of = [](Running* fit) {
    int port = 0;
    EXPECT_TRUE(absl::SimpleAtoi(fit->WaitForOutput("metrics at http://127\\.0\\.0\\.1:(\\d+)/metrics"), &port));
    return port;
  };
  const auto wait_until_done = [](int port, double share) {
    return WaitUntil([&] { return Scrape(port, "skein_fit_done_ratio") >= share; }, absl::Minutes(1));
  };
  {
    Running fit("skein", arguments);
    ASSERT_TRUE(wait_until_done(port_of(&fit), 0.5));
    fit.Signal(SIGTERM);
    ASSERT_EQ(fit.WaitForEnd(), 0);
    ASSERT_THAT(fit.Output(), HasSubstr("stopped in epoch 1 "));
  }
  Running fit("skein", arguments);
  const int port = port_of(&fit);
  ASSERT_TRUE(wait_until_done(port, 0.5));
  ASSERT_TRUE(wait_until_done(port, Scrape(port, "skein_fit_done_ratio") + 0.03));
  const absl::Time begin = absl::Now();
  const double eta = Scrape(port, "skein_fit_eta_seconds"), done = Scrape(port, "skein_fit_done_ratio");
  ASSERT_LT(done, 0.8);
  ASSERT_TRUE(wait_until_done(port, done + 0.1));
  const double took = absl::ToDoubleSeconds(absl::Now() - begin), went_on = Scrape(port, "skein_fit_done_ratio") - done;
  // With the earlier process's half of the steps it would be a tenth of this, or less.
  EXPECT_GT(eta, 0.25 * took * (1 - done) / went_on) << done << " done";
  fit.Signal(SIGTERM);
  EXPECT_EQ(fit.WaitForEnd(), 0);
}

}  // namespace
}  // namespace skein
