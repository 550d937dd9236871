// SPDX-License-Identifier: Apache-2.0
#include "cli/run_listing.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>

#include "tests/cli/scratch_folder.h"

namespace skein {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Pair;

class Runs : public testing::Test {
 protected:
  Runs() {
    folder_.Write("one/config.yaml", "env: {id: CartPole-v1}\ntotal_steps: 300\nppo: {lr: 1e-3}\n");
    folder_.Write("one/metrics.jsonl",
                  "{\"iteration\": 1, \"env_steps\": 100, \"seconds\": 1.5, \"episode_return_mean\": null}\n"
                  "{\"iteration\": 2, \"env_steps\": 200, \"seconds\": 3, \"episode_return_mean\": 30, \"update\": "
                  "{\"kl\": 0.5}}\n"
                  "no JSON\n"
                  "{\"iteration\": 3, \"env_steps\": 300, \"seconds\": 4.5, \"episode_return_mean\": 20, \"update\": "
                  "{\"kl\": 0.25}}\n"
                  "{\"iteration\": 4, \"env_st");
    folder_.Write("one/eval.json", "{\"return_mean\": 25.5}");
    folder_.Write("two/config.yaml", "env: {id: CartPole-v1, hide: [1]}\ntotal_steps: 300\nseed: 7\n");
    folder_.Write("no_run/file", "");
    folder_.Write("broken/config.yaml", "env: {id: [}\n");
  }
  const ScratchFolder folder_;
};

TEST_F(Runs, AreFoldersWithAConfiguration) {
  EXPECT_THAT(RunNames(folder_.path()).value(), ElementsAre("broken", "one", "two"));
  EXPECT_EQ(RunNames(folder_.path() + "/none").status().code(), absl::StatusCode::kNotFound);
}

TEST_F(Runs, MayBeOfModelsOfSequences) {
  folder_.Write("words/config.yaml", "name: words\nseed: 3\ntrain: {epochs: 9, patience: 2}\n");
  folder_.Write(
      "words/metrics.jsonl",
      "{\"iteration\": 1, \"epoch\": 1, \"loss\": 2, \"sequences\": 64}\n"
      "{\"iteration\": 2, \"epoch\": 1, \"held_out_loss\": 1.5, \"epoch_sequences\": 100, \"sequences\": 100}\n"
      "{\"iteration\": 4, \"epoch\": 2, \"held_out_loss\": 1.75, \"epoch_sequences\": 100, \"sequences\": 200}\n");
  const RunListing run = ReadRun(folder_.path(), "words").value();
  EXPECT_EQ(run.task(), "sequences");
  EXPECT_EQ(run.algorithm(), "fit");
  EXPECT_EQ(run.seed(), 3);
  EXPECT_EQ(run.env_steps, 200u);
  EXPECT_EQ(run.total_steps, 900u);
  EXPECT_EQ(run.held_out_loss, 1.75);
  EXPECT_EQ(run.best_held_out_loss, 1.5);
  EXPECT_FALSE(run.finished);
  EXPECT_THAT(ReadCurve(run, "held_out_loss").value(), ElementsAre(Pair(100, 1.5), Pair(200, 1.75)));
  folder_.Write("other/config.yaml", "name: other\nseed: 3\ntrain: {epochs: 9, patience: 1}\n");
  folder_.Write("other/metrics.jsonl",
                "{\"epoch\": 1, \"held_out_loss\": 1, \"sequences\": 9}\n{\"epoch\": 2, \"held_out_loss\": 1}\n");
  const RunListing other = ReadRun(folder_.path(), "other").value();
  EXPECT_TRUE(other.finished);  // An epoch without a smaller loss.
  EXPECT_THAT(DifferentSettings({run, other}), ElementsAre(Pair("train.patience", ElementsAre("2", "1"))));
  EXPECT_TRUE(RemoveRun(other).ok());
}

TEST_F(Runs, AreReadFromTheirFiles) {
  const auto run = ReadRun(folder_.path(), "one");
  ASSERT_TRUE(run.ok()) << run.status();
  EXPECT_EQ(run->config.env().id(), "CartPole-v1");
  EXPECT_EQ(run->env_steps, 300u);
  EXPECT_EQ(run->seconds, 4.5);
  EXPECT_EQ(run->episode_return, 20);
  EXPECT_EQ(run->best_episode_return, 30);
  EXPECT_EQ(run->evaluation, 25.5);
  EXPECT_FALSE(run->running);
  EXPECT_FALSE(run->checkpoint);
  EXPECT_GT(run->bytes, 300u);
  const auto two = ReadRun(folder_.path(), "two");
  EXPECT_EQ(two->env_steps, 0u);
  EXPECT_FALSE(two->episode_return);
}

TEST_F(Runs, ThatAreNoneAreRefused) {
  EXPECT_THAT(std::string(ReadRun(folder_.path(), "on").status().message()), HasSubstr("the nearest is 'one'"));
  for (const char* path : {"", ".", "..", "one/x", "../one"}) {
    EXPECT_EQ(ReadRun(folder_.path(), path).status().code(), absl::StatusCode::kInvalidArgument) << path;
  }
  EXPECT_EQ(ReadRun(folder_.path(), "broken").status().code(), absl::StatusCode::kDataLoss);
}

TEST_F(Runs, WhoseMetricsAreNoFileAreNotWaitedFor) {
  ASSERT_EQ(mkfifo((folder_.path() + "/two/metrics.jsonl").c_str(), 0600), 0);
  EXPECT_EQ(ReadRun(folder_.path(), "two")->env_steps, 0u);
}

TEST_F(Runs, ThatCannotBeReadCanBeFoundAndRemoved) {
  EXPECT_TRUE(absl::IsDataLoss(ReadRun(folder_.path(), "broken").status()));
  const auto run = FindRun(folder_.path(), "broken");
  ASSERT_TRUE(run.ok()) << run.status();
  EXPECT_FALSE(run->running);
  EXPECT_GT(run->bytes, 0u);
  EXPECT_TRUE(RemoveRun(*run).ok());
  EXPECT_TRUE(absl::IsNotFound(FindRun(folder_.path(), "broken").status()));
}

TEST_F(Runs, WhoseConfigurationIsLostOrEmptyAreDamaged) {
  folder_.Write("empty/config.yaml", "");
  folder_.Write("lost/metrics.jsonl", "{}\n");
  EXPECT_THAT(RunNames(folder_.path()).value(), ElementsAre("broken", "empty", "lost", "one", "two"));
  const absl::Status empty = ReadRun(folder_.path(), "empty").status();
  EXPECT_TRUE(absl::IsDataLoss(empty));
  EXPECT_THAT(std::string(empty.message()), HasSubstr("empty/config.yaml: names no environment"));
  EXPECT_TRUE(absl::IsDataLoss(ReadRun(folder_.path(), "lost").status()));
  EXPECT_TRUE(RemoveRun(FindRun(folder_.path(), "lost").value()).ok());
}

TEST_F(Runs, HaveCurves) {
  const RunListing run = ReadRun(folder_.path(), "one").value();
  EXPECT_THAT(ReadCurve(run, "update.kl").value(), ElementsAre(Pair(200, 0.5), Pair(300, 0.25)));
  EXPECT_THAT(ReadCurve(run, "episode_return_mean").value(), ElementsAre(Pair(200, 30), Pair(300, 20)));
  EXPECT_THAT(std::string(ReadCurve(run, "kl").status().message()), HasSubstr("it has env_steps, episode_return_mean"));
  EXPECT_THAT(std::string(ReadCurve(ReadRun(folder_.path(), "two").value(), "kl").status().message()),
              HasSubstr("has no iteration yet"));
}

TEST_F(Runs, AreComparedByTheSettingsThatDiffer) {
  const auto different =
      DifferentSettings({ReadRun(folder_.path(), "one").value(), ReadRun(folder_.path(), "two").value()});
  EXPECT_THAT(different,
              ElementsAre(Pair("env.hide", ElementsAre("-", "[1]")), Pair("ppo.lr", ElementsAre("0.001", "3e-04")),
                          Pair("seed", ElementsAre("1", "7"))));
}

TEST_F(Runs, AreRemovedUnlessTheyRun) {
  folder_.Write("one/lock", "");
  const RunListing before = ReadRun(folder_.path(), "one").value();
  const int fd = open((folder_.path() + "/one/lock").c_str(), O_RDWR | O_CLOEXEC);
  ASSERT_EQ(flock(fd, LOCK_EX | LOCK_NB), 0);
  EXPECT_TRUE(ReadRun(folder_.path(), "one")->running);
  EXPECT_EQ(RemoveRun(before).code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_TRUE(std::filesystem::exists(folder_.path() + "/one/config.yaml"));
  close(fd);
  EXPECT_TRUE(RemoveRun(before).ok());
  EXPECT_FALSE(std::filesystem::exists(folder_.path() + "/one"));
  EXPECT_TRUE(std::filesystem::exists(folder_.path() + "/two/config.yaml"));
}

}  // namespace
}  // namespace skein
