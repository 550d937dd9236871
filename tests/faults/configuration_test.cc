// SPDX-License-Identifier: Apache-2.0
// Configurations that are wrong, by accident or on purpose, at real programs.
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "tests/integration/run_files.h"
#include "tests/testing/program.h"

namespace skein {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

namespace fs = std::filesystem;

#if defined(SKEIN_SANITIZED)
constexpr char kLimit[] = "";  // Sanitizers reserve terabytes of address space.
#else
constexpr char kLimit[] = "ulimit -v 524288; ";
#endif

class FaultRow33 : public testing::Test {
 protected:
  FaultRow33()
      : coordinator_("skein-coordinator", {"--listen", "127.0.0.1:0", "--http", "127.0.0.1:0"}),
        port_in_use_(coordinator_.WaitForOutput("listening grpc=127.0.0.1:(\\d+)")) {}

  // Both programs that read a configuration refuse this one with exit code 64 and one line, and before they open a
  // socket: the port they are told to listen on is in use, and that they do not notice. They get half a gigabyte of
  // address space. The line, less the program's name and the path.
  std::string Mistake(const std::string& path) {
    const Ended coordinator = Run("skein-coordinator", absl::StrCat("--listen 127.0.0.1:", port_in_use_), path);
    const Ended train =
        Run("skein", absl::StrCat("train --runs-dir ", folder_.path(), "/runs --port ", port_in_use_), path);
    for (const Ended& ended : {coordinator, train}) {
      EXPECT_EQ(ended.code, 64) << ended.out << ended.err;
      EXPECT_EQ(std::count(ended.err.begin(), ended.err.end(), '\n'), 1) << ended.err;
      EXPECT_THAT(ended.err, AllOf(Not(HasSubstr("in use")), Not(HasSubstr("terminate")), Not(HasSubstr("bad_alloc"))));
      EXPECT_LT(ended.wall_time, absl::Seconds(20));
    }
    EXPECT_EQ(coordinator.err.substr(coordinator.err.find(": ")), train.err.substr(train.err.find(": ")));
    EXPECT_FALSE(fs::exists(folder_.path() + "/runs"));
    const std::string start = absl::StrCat("skein-coordinator: ", path, ":");
    const std::string line = coordinator.err.substr(0, coordinator.err.find('\n'));
    return line.substr(std::min(start.size(), line.size()));
  }
  std::string MistakeIn(const std::string& text) { return Mistake(folder_.Write("run.yaml", text)); }

  const ScratchFolder folder_;

 private:
  static Ended Run(const std::string& program, const std::string& arguments, const std::string& path) {
    return RunToEnd("/bin/sh",
                    {"-c", absl::StrCat(kLimit, "exec \"$SKEIN_BIN/", program, "\" ", arguments, " --config ", path)});
  }

  Running coordinator_;
  const std::string port_in_use_;
};

TEST_F(FaultRow33, AnUnknownKeyIsNamedWithItsPlaceAndTheNearestOne) {
  EXPECT_THAT(MistakeIn("seed: 1\nppo:\n  learn_rate: 1e-3\n"), StartsWith("3:3: unknown key 'ppo.learn_rate'"));
  EXPECT_EQ(MistakeIn("ppo:\n  epoch: 1\n"), "2:3: unknown key 'ppo.epoch'; the nearest is 'ppo.epochs'");
}

TEST_F(FaultRow33, AWrongTypeIsNamedWithItsPlace) {
  EXPECT_EQ(MistakeIn("ppo:\n  epochs: many\n"), "2:11: ppo.epochs: expected a whole number, got 'many'");
  EXPECT_EQ(MistakeIn("ppo: 3\n"), "1:6: ppo: expected keys and values, got '3'");
}

TEST_F(FaultRow33, ANumberThatIsNoneOrOutOfRangeIsNamedWithItsPlace) {
  EXPECT_EQ(MistakeIn("ppo:\n  lr: .nan\n"), "2:7: ppo.lr: must be a finite number, got '.nan'");
  EXPECT_EQ(MistakeIn("ppo:\n  minibatch_size: -1\n"), "2:19: ppo.minibatch_size: must be at least 0, got '-1'");
}

TEST_F(FaultRow33, AKeyGivenTwiceIsNamedWithItsPlace) {
  EXPECT_EQ(MistakeIn("ppo:\n  lr: 1e-3\n  clip: 0.2\n  lr: 1e-4\n"), "4:3: key 'ppo.lr' is given twice");
}

TEST_F(FaultRow33, AFileOfAGigabyteIsNotRead) {
  const std::string path = folder_.Write("huge.yaml", "seed: 1\n");
  fs::resize_file(path, uint64_t{1} << 30);  // Of zeros that take no room on the disk.
  Mistake(path);
  Mistake("/dev/zero");  // Says that it has no bytes, and never ends.
}

TEST_F(FaultRow33, AnAliasBombDoesNotGoOff) {
  // Nine lists, each of nine times the one before: 9^9 = 387 million values, were it expanded.
  std::string text = "a: &a [x, x, x, x, x, x, x, x, x]\n";
  for (char c = 'b'; c <= 'i'; ++c) {
    const std::string alias = absl::StrCat("*", std::string(1, static_cast<char>(c - 1)));
    absl::StrAppend(&text, std::string(1, c), ": &", std::string(1, c), " [", alias);
    for (int i = 0; i < 8; ++i) absl::StrAppend(&text, ", ", alias);
    text += "]\n";
  }
  EXPECT_EQ(MistakeIn(text), "1:4: anchors and aliases are not supported");
}

TEST_F(FaultRow33, DeepNestingEndsWithAMessage) {
  EXPECT_THAT(MistakeIn(std::string(1000000, '[')), HasSubstr("1:"));
  EXPECT_THAT(MistakeIn("ppo: " + std::string(1000000, '{')), Not(HasSubstr("unknown key")));
}

TEST_F(FaultRow33, AnAssignmentOnTheCommandLineIsQuoted) {
  const Ended ended = RunToEnd("skein-coordinator", {"--set", "ppo.lrr=1e-3"});
  EXPECT_EQ(ended.code, 64);
  EXPECT_THAT(ended.err, AllOf(HasSubstr("--set ppo.lrr=1e-3"), HasSubstr("'ppo.lr'")));
  const Ended train = RunToEnd("skein", {"train", "--runs-dir", folder_.path() + "/runs", "--set", "ppo.lr=.nan"});
  EXPECT_EQ(train.code, 64);
  EXPECT_THAT(train.err, AllOf(HasSubstr("ppo.lr"), HasSubstr("finite")));
  EXPECT_FALSE(fs::exists(folder_.path() + "/runs"));
}

}  // namespace
}  // namespace skein
