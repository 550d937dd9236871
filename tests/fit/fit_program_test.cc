// SPDX-License-Identifier: Apache-2.0
// skein fit and skein detect as programs.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "tests/fit/text_file.h"
#include "tests/testing/program.h"
#include "tests/testing/wait_until.h"

namespace skein {
namespace {

using ::testing::HasSubstr;
using ::testing::MatchesRegex;
using ::testing::Not;
using Json = nlohmann::json;

// Normal sequences: 1 2, then 3 once to four times, 4. Line i.
std::string Normal(int i) {
  std::string text = "1 2 ";
  for (int k = 0; k <= i * 31 % 4; ++k) text += "3 ";
  return text + "4\n";
}

std::string WriteNormal(const std::string& folder, int lines = 400) {
  std::string text;
  for (int i = 0; i < lines; ++i) text += Normal(i);
  return WriteText(folder + "/normal.txt", text);
}

std::vector<std::string> Arguments(const std::string& folder, std::vector<std::string> more = {}) {
  std::vector<std::string> all = {"fit",
                                  "--data",
                                  folder + "/normal.txt",
                                  "--run-dir",
                                  folder + "/run",
                                  "--set",
                                  "model.hidden=16",
                                  "--set",
                                  "model.embedding=16",
                                  "--set",
                                  "train.epochs=30",
                                  "--set",
                                  "train.batch_size=64",
                                  "--set",
                                  "train.lr=0.02",
                                  "--set",
                                  "logging.log_interval=2"};
  all.insert(all.end(), more.begin(), more.end());
  return all;
}

std::vector<Json> Lines(const std::string& text) {
  std::vector<Json> lines;
  for (const auto line : absl::StrSplit(text, '\n', absl::SkipEmpty())) lines.push_back(Json::parse(line));
  return lines;
}

std::string Read(const std::string& path) {
  std::ifstream stream(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), {}};
}

std::string DigestIn(const std::string& output) {
  const size_t at = output.rfind(", digest ");  // The last one is the checkpoint's.
  return at == std::string::npos ? "" : output.substr(at + 9, 16);
}

TEST(FitProgram, TrainsAndFindsWhatIsAnomalous) {
  const std::string folder = FreshFolder("program");
  WriteNormal(folder);
  const Ended fit = RunToEnd("skein", Arguments(folder));
  ASSERT_EQ(fit.code, 0) << fit.out << fit.err;
  EXPECT_THAT(fit.out, HasSubstr("each once"));
  EXPECT_THAT(fit.out, HasSubstr("finished: epoch "));
  const std::vector<Json> metrics = Lines(Read(folder + "/run/metrics.jsonl"));
  ASSERT_FALSE(metrics.empty());
  EXPECT_LT(metrics.back().at("held_out_loss").get<double>(), 0.5);

  WriteText(folder + "/test.txt", "1 2 3 4\n2 1 3 4\n1 2 3 3\n1 2 9 4\n\n1 2 3 4\n1 2 3 3 3 3 3 3 3 3 3 3 4\n");
  const Ended detect = RunToEnd("skein", {"detect", "--checkpoint", folder + "/run", "--data", folder + "/test.txt"});
  ASSERT_EQ(detect.code, 0) << detect.err;
  const std::vector<Json> verdicts = Lines(detect.out);
  ASSERT_EQ(verdicts.size(), 6);
  std::vector<bool> anomalous;
  for (const Json& verdict : verdicts) anomalous.push_back(verdict.at("anomalous"));
  EXPECT_EQ(anomalous, (std::vector<bool>{false, true, true, true, false, true})) << detect.out;
  EXPECT_TRUE(verdicts[0].at("position").is_null());
  EXPECT_EQ(verdicts[1].at("position"), 0);
  EXPECT_EQ(verdicts[1].at("key"), "2");
  EXPECT_EQ(verdicts[2].at("position"), 4);  // It ends too early.
  EXPECT_EQ(verdicts[2].at("key"), "end");
  EXPECT_EQ(verdicts[3].at("position"), 2);
  EXPECT_EQ(verdicts[3].at("key"), "unknown");
  EXPECT_EQ(verdicts[4].at("line"), 6);  // Line 5 is empty.
  EXPECT_THAT(detect.err, HasSubstr("6 sequences, 5 of them distinct"));

  // A checkpoint itself, another limit, a bad line: what came before it is written.
  WriteText(folder + "/bad.txt", "1 2 3 4\nx\n");
  const Ended bad = RunToEnd("skein", {"detect", "--checkpoint", folder + "/run/checkpoints/latest", "--data",
                                       folder + "/bad.txt", "--top-g", "8"});
  EXPECT_EQ(bad.code, 65);
  EXPECT_EQ(Lines(bad.out).size(), 1);
  EXPECT_THAT(bad.err, HasSubstr("/bad.txt:2: 'x' is no key"));
  const Ended eval = RunToEnd("skein", {"eval", "--checkpoint", folder + "/run/checkpoints/latest"});
  EXPECT_EQ(eval.code, 65);
  EXPECT_THAT(eval.err, HasSubstr("is a model of sequences and no policy; `skein detect` uses it"));
  const Ended refuse = RunToEnd("skein", {"detect", "--checkpoint", folder + "/run", "--data", folder + "/test.txt",
                                          "--set", "data.unknown_keys=refuse"});
  EXPECT_EQ(refuse.code, 65);
  EXPECT_THAT(refuse.err, HasSubstr("/test.txt:4: key '9' is not in the model's vocabulary"));
}

TEST(FitProgram, FindsKnownCountsNormalIfThatIsSet) {
  const std::string folder = FreshFolder("known-counts-program");
  WriteNormal(folder);
  WriteText(folder + "/test.txt", "1 2 3 4\n2 1 3 4\n1 2 3 3\n1 2 9 4\n2 1 3 4\n");
  const std::vector<std::string> detect = {"detect", "--checkpoint", folder + "/run", "--data", folder + "/test.txt"};
  const auto verdicts = [&](const std::vector<std::string>& more, std::string* err) {
    std::vector<std::string> all = detect;
    all.insert(all.end(), more.begin(), more.end());
    const Ended ended = RunToEnd("skein", all);
    EXPECT_EQ(ended.code, 0) << ended.err;
    if (err != nullptr) *err = ended.err;
    return Lines(ended.out);
  };
  const Ended alone = RunToEnd("skein", Arguments(folder));
  ASSERT_EQ(alone.code, 0) << alone.err;
  EXPECT_THAT(alone.out, HasSubstr("with --set detect.known_counts=true the same command chooses limits"));
  const std::vector<Json> before = verdicts({}, nullptr);
  ASSERT_EQ(before.size(), 5);
  EXPECT_TRUE(before[1].at("anomalous"));
  EXPECT_FALSE(before[1].contains("known_counts"));
  std::vector<std::string> asked = detect;
  asked.insert(asked.end(), {"--set", "detect.known_counts=true"});
  const Ended without = RunToEnd("skein", asked);
  EXPECT_EQ(without.code, 65);
  EXPECT_THAT(without.err, HasSubstr("has no count vectors (detect.known_counts)"));

  // The same training goes on with the setting: it chooses again.
  const Ended fit = RunToEnd("skein", Arguments(folder, {"--set", "detect.known_counts=true"}));
  ASSERT_EQ(fit.code, 0) << fit.err;
  EXPECT_THAT(fit.out, Not(HasSubstr("of the model alone")));
  EXPECT_THAT(fit.out, HasSubstr("they are for other count vectors than the 4 of the data; 0 of these"));
  std::string err;
  const std::vector<Json> lines = verdicts({}, &err);
  ASSERT_EQ(lines.size(), 5);
  std::vector<bool> anomalous, known;
  for (const Json& line : lines) {
    anomalous.push_back(line.at("anomalous"));
    known.push_back(line.at("known_counts"));
  }
  EXPECT_EQ(anomalous, (std::vector<bool>{false, false, true, true, false}));
  EXPECT_EQ(known, (std::vector<bool>{true, true, false, false, true}));
  EXPECT_EQ(lines[1].at("position"), 0) << "what the model says is still there";
  EXPECT_EQ(lines[1].at("rank"), before[1].at("rank"));
  EXPECT_EQ(lines[1].at("probability"), before[1].at("probability"));
  EXPECT_THAT(err, HasSubstr("2 anomalous"));
  EXPECT_THAT(err, HasSubstr("3 have a known count vector"));
  EXPECT_EQ(verdicts({"--set", "detect.known_counts=false"}, nullptr), before) << "the model alone, with its own limit";
}

TEST(FitProgram, StoppedOrKilledAndContinuedEndsWithTheSameBits) {
  const std::string whole = FreshFolder("whole"), parts = FreshFolder("parts");
  WriteNormal(whole, 2000);
  WriteNormal(parts, 2000);
  // The same file for both, since its name is in the configuration.
  const std::vector<std::string> same = {"--data", whole + "/normal.txt",       "--name", "same",
                                         "--set",  "checkpoint.save_interval=3"};
  const auto arguments = [&](const std::string& folder) {
    std::vector<std::string> all = Arguments(folder, same);
    all[2] = whole + "/normal.txt";
    all.erase(all.begin() + 1, all.begin() + 3);
    return all;
  };
  const Ended straight = RunToEnd("skein", arguments(whole));
  ASSERT_EQ(straight.code, 0) << straight.err;
  ASSERT_NE(DigestIn(straight.out), "");
  for (const int signal : {SIGKILL, SIGTERM}) {
    Running first("skein", arguments(parts));
    first.WaitForOutput(signal == SIGKILL ? "(epoch 2 of)" : "(epoch 10 of)");
    first.Signal(signal);
    EXPECT_EQ(first.WaitForEnd(), signal == SIGKILL ? 128 + SIGKILL : 0);
  }
  const Ended rest = RunToEnd("skein", arguments(parts));
  ASSERT_EQ(rest.code, 0) << rest.err;
  EXPECT_THAT(rest.out, HasSubstr("goes on from "));
  EXPECT_EQ(DigestIn(rest.out), DigestIn(straight.out));
  // Each step once.
  uint64_t before = 0;
  for (const Json& line : Lines(Read(parts + "/run/metrics.jsonl"))) {
    EXPECT_GT(line.at("iteration").get<uint64_t>(), before);
    before = line.at("iteration");
  }
}

TEST(FitProgram, TrainsTheSameBitsWithTwoLearnersAndAfterOneIsKilled) {
  const std::string one = FreshFolder("one"), two = FreshFolder("two");
  WriteNormal(one, 2000);
  const auto arguments = [&](const std::string& folder, std::vector<std::string> more) {
    std::vector<std::string> all = Arguments(folder, more);
    all[2] = one + "/normal.txt";
    return all;
  };
  const Ended alone = RunToEnd("skein", arguments(one, {}));
  ASSERT_EQ(alone.code, 0) << alone.err;
  Running both("skein", arguments(two, {"--learners", "2", "--set", "checkpoint.save_interval=2"}));
  both.WaitForOutput("(epoch 2 of)");
  // The child that is rank 1.
  const std::string children = Read(absl::StrCat("/proc/", both.pid(), "/task/", both.pid(), "/children"));
  const std::vector<std::string> pids = absl::StrSplit(children, ' ', absl::SkipWhitespace());
  ASSERT_EQ(pids.size(), 2) << children;
  kill(std::stoi(pids[1]), SIGKILL);
  EXPECT_EQ(both.WaitForEnd(absl::Minutes(2)), 0);
  EXPECT_THAT(both.Output(), HasSubstr("a rank was lost"));
  EXPECT_THAT(both.Output(), HasSubstr("2 ranks"));
  EXPECT_NE(DigestIn(alone.out), "");
  EXPECT_EQ(DigestIn(both.Output()), DigestIn(alone.out));
}

TEST(FitProgram, SaysInOneLineThatTwoLearnersAreStoppedWhileTheyReadData) {
  const std::string folder = FreshFolder("stopped-reading");
  std::string text;
  for (int i = 0; i < 8'000'000; ++i) text += "1 2 3 4\n";
  WriteText(folder + "/normal.txt", text);
  Running both("skein", Arguments(folder, {"--learners", "2"}));
  ASSERT_TRUE(WaitUntil([&] { return std::filesystem::exists(folder + "/run/data"); }, absl::Minutes(1)));
  both.Signal(SIGTERM);
  EXPECT_EQ(both.WaitForEnd(), 75);
  EXPECT_EQ(both.Output(), "skein fit: stopped on request while the data were read\n");
}

// As torchrun starts them, each with its own place in the variables.
TEST(FitProgram, TrainsTheSameBitsAsTwoProcessesThatFindEachOtherByVariables) {
  const std::string one = FreshFolder("by-itself"), two = FreshFolder("by-variables");
  WriteNormal(one);
  const auto arguments = [&](const std::string& folder) {
    std::vector<std::string> all = Arguments(folder, {"--set", "train.epochs=2"});
    all[2] = one + "/normal.txt";
    return all;
  };
  const Ended alone = RunToEnd("skein", arguments(one));
  ASSERT_EQ(alone.code, 0) << alone.err;
  const auto place = [port = FreePort()](int rank) {
    return std::vector<std::string>{absl::StrCat("RANK=", rank), "WORLD_SIZE=2", absl::StrCat("LOCAL_RANK=", rank),
                                    "MASTER_ADDR=127.0.0.1", absl::StrCat("MASTER_PORT=", port)};
  };
  Running first("skein", arguments(two), place(0)), second("skein", arguments(two), place(1));
  EXPECT_EQ(first.WaitForEnd(), 0);
  EXPECT_EQ(second.WaitForEnd(), 0);
  EXPECT_NE(DigestIn(alone.out), "");
  EXPECT_EQ(DigestIn(first.Output()), DigestIn(alone.out));
}

TEST(FitProgram, LeavesTheRunsOfOthersAsTheyAre) {
  const std::string folder = FreshFolder("others");
  WriteNormal(folder);
  const std::string run = folder + "/run", settings = "name: walker\nenv: {id: CartPole-v1}\n";
  std::filesystem::create_directories(run);
  WriteText(run + "/config.yaml", settings);
  for (const char* learners : {"1", "2"}) {
    const Ended refused = RunToEnd("skein", Arguments(folder, {"--learners", learners}));
    EXPECT_EQ(refused.code, 65) << refused.err;
    EXPECT_THAT(refused.err, HasSubstr("has the run of a policy for CartPole-v1"));
    EXPECT_EQ(Read(run + "/config.yaml"), settings);
  }
  const Ended moved =
      RunToEnd("skein", Arguments(folder, {"--learners", "2", "--resume", "never", "--set", "train.epochs=1"}));
  ASSERT_EQ(moved.code, 0) << moved.err;
  EXPECT_EQ(Read(run + ".old-1/config.yaml"), settings);
  EXPECT_FALSE(std::filesystem::exists(run + ".old-1/rank-1.log"));
  EXPECT_TRUE(std::filesystem::exists(run + "/rank-1.log"));
  const int held = open((run + "/lock").c_str(), O_RDWR | O_CLOEXEC);
  ASSERT_EQ(flock(held, LOCK_EX | LOCK_NB), 0);
  for (const char* learners : {"1", "2"}) {  // Not 75, after which launchers try again at once.
    const Ended refused = RunToEnd("skein", Arguments(folder, {"--learners", learners}));
    EXPECT_EQ(refused.code, 69) << refused.err;
    EXPECT_THAT(refused.err, MatchesRegex("skein fit: [^\n]*/run is in use by another training; stop it, [^\n]*\n"));
  }
  close(held);
}

TEST(FitProgram, TwoLearnersRefuseInOneLineAndChangeNothing) {
  const std::string folder = FreshFolder("two-refuse"), run = folder + "/run";
  WriteNormal(folder);
  const auto train = [&](const std::vector<std::string>& more) {
    std::vector<std::string> all = Arguments(folder, {"--learners", "2", "--set", "train.epochs=1"});
    all.insert(all.end(), more.begin(), more.end());
    return RunToEnd("skein", all);
  };
  ASSERT_EQ(train({}).code, 0);
  const std::string settings = Read(run + "/config.yaml");
  const Ended other_seed = train({"--seed", "77"});
  EXPECT_EQ(other_seed.code, 65);
  EXPECT_THAT(other_seed.err, HasSubstr("this training began with seed 1, got 77"));
  EXPECT_EQ(std::count(other_seed.err.begin(), other_seed.err.end(), '\n'), 1) << other_seed.err;
  EXPECT_EQ(Read(run + "/config.yaml"), settings);

  // The ranks log to the file that was asked for.
  const std::string log = folder + "/log.jsonl";
  ASSERT_EQ(train({"--resume", "never", "--set", "data.holdout=0", "--log-json", log}).code, 0);
  EXPECT_THAT(Read(log), HasSubstr("no sequence is held out"));

  WriteText(folder + "/normal.txt", "1 2 3\n1 x 3\n");
  for (int i = 0; i < 3; ++i) {
    const Ended bad = train({"--resume", "never"});
    EXPECT_EQ(bad.code, 65);
    EXPECT_THAT(bad.err, HasSubstr("normal.txt:2: 'x' is no key"));
    EXPECT_EQ(std::count(bad.err.begin(), bad.err.end(), '\n'), 1) << bad.err;
  }
}

TEST(FitProgram, ChoosesNoLimitWithoutHeldOutSequences) {
  const std::string folder = FreshFolder("no-held-out");
  WriteNormal(folder);
  const Ended fit = RunToEnd("skein", Arguments(folder, {"--set", "data.holdout=0", "--set", "train.epochs=1"}));
  ASSERT_EQ(fit.code, 0) << fit.err;
  EXPECT_THAT(fit.err, HasSubstr("no sequence is held out"));
  EXPECT_THAT(fit.out, HasSubstr("held out nothing"));
  EXPECT_THAT(fit.out, HasSubstr("finished: the last epoch's parameters, as nothing is held out"));
  EXPECT_THAT(Read(folder + "/run/metrics.jsonl"), Not(HasSubstr("held_out_loss")));
  const std::vector<std::string> detect = {"detect", "--checkpoint", folder + "/run", "--data", folder + "/normal.txt"};
  const Ended refused = RunToEnd("skein", detect);
  EXPECT_EQ(refused.code, 65);
  EXPECT_THAT(refused.err, HasSubstr("has no limit"));
  const Ended both =
      RunToEnd("skein", {"detect", "--checkpoint", "a", "--data", "b", "--top-g", "3", "--probability", "0.5"});
  EXPECT_EQ(both.code, 64);
  EXPECT_THAT(both.err, HasSubstr("--probability excludes --top-g"));
  EXPECT_THAT(RunToEnd("skein", {"fit", "--seed", "x"}).err, MatchesRegex("skein fit: --seed: [^\n]*\n"));
  for (const char* unread : {"data.holdout=0.5", "detect.false_alarms=0.5", "train.lr=1", "data.files=x"}) {
    std::vector<std::string> with_unread = detect;
    with_unread.insert(with_unread.end(), {"--set", unread});
    const Ended ended = RunToEnd("skein", with_unread);
    EXPECT_EQ(ended.code, 64) << unread;
    EXPECT_THAT(ended.err, MatchesRegex("skein detect: --set '?[^\n]*: detect reads data.max_length, [^\n]*\n"));
  }
  std::vector<std::string> with_limit = detect;
  with_limit.insert(with_limit.end(), {"--set", "detect.probability=0.5"});
  EXPECT_EQ(RunToEnd("skein", with_limit).code, 0);
  const Ended lost = RunToEnd("/bin/sh", {"-c", std::string(std::getenv("SKEIN_BIN")) + "/skein " +
                                                    absl::StrJoin(with_limit, " ") + " > /dev/full"});
  EXPECT_EQ(lost.code, 74);
  EXPECT_THAT(lost.err, MatchesRegex("skein detect: standard output cannot be written: [^\n]*\n")) << "one line";
  WriteText(folder + "/normal.txt", "\n\n");
  with_limit.back() = "detect.probability=0.1";
  const Ended blank = RunToEnd("skein", with_limit);
  EXPECT_EQ(blank.code, 65);
  EXPECT_THAT(blank.err, HasSubstr("/normal.txt:2: the file has no sequence"));
  WriteText(folder + "/normal.txt", "1 2 3 4\n1 2 3\n");
  with_limit.insert(with_limit.end(), {"--set", "data.max_length=3"});
  const Ended longer = RunToEnd("skein", with_limit);
  EXPECT_EQ(longer.code, 65);
  EXPECT_THAT(longer.err, HasSubstr("/normal.txt:1: more than 3 keys (data.max_length)"));
}

TEST(FitProgram, ChoosesNoLimitIfAllHeldOutSequencesHaveUnknownKeys) {
  const std::string folder = FreshFolder("unknown-held-out");
  WriteNormal(folder);
  const Ended fit = RunToEnd("skein", Arguments(folder, {"--set", "model.vocabulary=3", "--set", "train.epochs=1"}));
  ASSERT_EQ(fit.code, 0) << fit.err;
  EXPECT_THAT(fit.out, HasSubstr(" held-out sequences have unknown keys; no limit is chosen from these"));
  EXPECT_THAT(fit.err, HasSubstr("every held-out sequence has an unknown key"));
  const Ended refused =
      RunToEnd("skein", {"detect", "--checkpoint", folder + "/run", "--data", folder + "/normal.txt"});
  EXPECT_EQ(refused.code, 65);
  EXPECT_THAT(refused.err, HasSubstr("has held no sequence without unknown keys out"));
}

TEST(FitProgram, DetectsNothingWithAPolicy) {
  const std::string folder = FreshFolder("policy");
  WriteNormal(folder);
  const Ended train = RunToEnd("skein", {"train", "--env", "CartPole-v1", "--recipe", "none", "--runs-dir", folder,
                                         "--name", "policy", "--no-eval", "--steps", "16384"});
  ASSERT_EQ(train.code, 0) << train.err;
  for (const char* const checkpoint : {"/policy", "/policy/checkpoints/latest"}) {
    const Ended detect =
        RunToEnd("skein", {"detect", "--checkpoint", folder + checkpoint, "--data", folder + "/normal.txt"});
    EXPECT_EQ(detect.code, 65);
    EXPECT_EQ(detect.out, "");
    EXPECT_THAT(detect.err, MatchesRegex("[^\n]*\n")) << "one line";
    EXPECT_THAT(detect.err, HasSubstr("is a checkpoint of a policy for CartPole-v1; want one of `skein fit`"));
  }
}

TEST(FitProgram, SaysInOneLineWhatIsWrong) {
  const std::string folder = FreshFolder("wrong");
  WriteNormal(folder);
  const auto failure = [&](const std::vector<std::string>& arguments, int code) {
    const Ended ended = RunToEnd("skein", arguments);
    EXPECT_EQ(ended.code, code) << ended.err;
    EXPECT_THAT(ended.err, MatchesRegex("[^\n]*\n")) << "one line";
    return ended.err;
  };
  WriteText(folder + "/bad.txt", "1 2\n1 two\n");
  EXPECT_THAT(failure({"fit", "--data", folder + "/bad.txt", "--run-dir", folder + "/r"}, 65),
              HasSubstr("/bad.txt:2: 'two'"));
  EXPECT_THAT(failure({"fit", "--data", folder + "/bad.txt", "--run-dir", folder + "/r", "--learners", "2"}, 65),
              HasSubstr("/bad.txt:2: 'two'"));
  WriteText(folder + "/empty.txt", "");
  EXPECT_THAT(failure({"fit", "--data", folder + "/empty.txt", "--run-dir", folder + "/r"}, 65),
              HasSubstr("/empty.txt:1:"));
  EXPECT_THAT(failure({"fit", "--data", folder + "/absent", "--run-dir", folder + "/r"}, 65), HasSubstr("/absent"));
  EXPECT_THAT(failure({"fit", "--run-dir", folder + "/r"}, 64), HasSubstr("--data"));
  const std::string text = Read(folder + "/normal.txt");
  const std::string gz = WriteGzip(folder + "/cut.gz", text);
  std::filesystem::resize_file(gz, std::filesystem::file_size(gz) / 2);
  EXPECT_THAT(failure({"fit", "--data", gz, "--run-dir", folder + "/r"}, 65), HasSubstr("/cut.gz:"));
  EXPECT_THAT(failure({"fit", "--data", gz, "--set", "train.epoch=2"}, 64), HasSubstr("the nearest is 'train.epochs'"));
  EXPECT_THAT(failure({"detect", "--checkpoint", folder + "/none", "--data", gz}, 65), HasSubstr("/none"));
  WriteText(folder + "/bytes.txt", "\xe9 a\n");
  EXPECT_THAT(
      failure({"fit", "--data", folder + "/bytes.txt", "--set", "data.keys=tokens", "--run-dir", folder + "/r"}, 65),
      HasSubstr("/bytes.txt:1: '\\xe9' is no key"));
  EXPECT_THAT(failure({"fit", "--data", folder + "/normal.txt", "--run-dir", folder + "/r", "--set",
                       "model.vocabulary=3", "--set", "data.unknown_keys=refuse"},
                      65),
              HasSubstr("/normal.txt:1: key 3 is beyond the vocabulary of 3 keys"));
  EXPECT_THAT(failure({"fit", "--data", folder + "/normal.txt", "--run-dir", folder + "/r", "--resume", "must"}, 65),
              HasSubstr("/r/checkpoints"));
}

}  // namespace
}  // namespace skein
