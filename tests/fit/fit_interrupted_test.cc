// SPDX-License-Identifier: Apache-2.0
// A skein fit that is stopped or killed where it is awkward, and goes on.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/fit/text_file.h"
#include "tests/testing/program.h"

namespace skein {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

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

}  // namespace
}  // namespace skein
