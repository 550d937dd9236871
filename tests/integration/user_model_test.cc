// SPDX-License-Identifier: Apache-2.0
// env.mujoco.xml_file at the real program: a model that is hostile, broken or another task's ends it with code 65 and
// one line, before anything starts, and within a gigabyte and a half of address space.
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "gmock/gmock.h"
#include "tests/testing/program.h"

namespace skein {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

#if defined(SKEIN_SANITIZED)
constexpr char kLimit[] = "";  // Sanitizers reserve terabytes of address space.
#else
constexpr char kLimit[] = "ulimit -v 1572864; ";
#endif

class UserModelOfARun : public testing::Test {
 protected:
  // The line with which `skein train` refuses the model.
  std::string Refused(const std::string& env_id, const std::string& path, const std::string& more = "") {
    const Ended ended =
        RunToEnd("/bin/sh", {"-c", absl::StrCat(kLimit, "exec \"$SKEIN_BIN/skein\" train --runs-dir ", folder_.path(),
                                                "/runs --env ", env_id, " --set env.mujoco.xml_file=", path, more)});
    EXPECT_EQ(ended.code, 65) << path << "\n" << ended.out << ended.err;
    EXPECT_EQ(std::count(ended.err.begin(), ended.err.end(), '\n'), 1) << path << "\n" << ended.err;
    EXPECT_THAT(ended.err, AllOf(HasSubstr("env.mujoco.xml_file"), Not(HasSubstr("terminate"))));
    EXPECT_FALSE(std::filesystem::exists(folder_.path() + "/runs"));
    return ended.err;
  }
  std::string Hostile(const std::string& content) {
    return Refused("Hopper-v5", folder_.Write("model.xml", "<mujoco>" + content + "</mujoco>"));
  }
  static std::string Repeated(const std::string& text, int times) {
    std::string all;
    for (int i = 0; i < times; ++i) all += text;
    return all;
  }
  static std::string Read(const std::string& path) {
    std::ifstream file(path);
    return std::string(std::istreambuf_iterator<char>(file), {});
  }

  const ScratchFolder folder_;
};

TEST_F(UserModelOfARun, IsRefusedIfItIsMissingOrBroken) {
  EXPECT_THAT(Refused("Hopper-v5", folder_.path() + "/none.xml"), HasSubstr("there is no file"));
  EXPECT_THAT(Refused("Hopper-v5", folder_.path()), HasSubstr("not a file"));
  Hostile("<worldbody>");
  Hostile("<worldbody><body><geom size=\"-1\"/></body></worldbody>");
  Hostile("<include file=\"/etc/passwd\"/>");
}

TEST_F(UserModelOfARun, IsRefusedIfItWouldTakeAllMemoryOrForEver) {
  Hostile("<sensor><user dim=\"2000000000\"/></sensor>");
  Hostile("<asset>" + Repeated("<texture builtin=\"flat\" type=\"2d\" width=\"2048\" height=\"2048\"/>", 1000) +
          "</asset>");
  Hostile("<worldbody>" + Repeated("<body><freejoint/><geom size=\"1\"/></body>", 900) + "</worldbody>");
  Hostile("<worldbody><body><freejoint/>" + Repeated("<geom size=\"1\"/>", 5000) + "</body></worldbody>");
  Hostile("<worldbody>" + Repeated("<body><freejoint/><geom size=\"1\"/></body>", 190) + "</worldbody>");
  Hostile("<size njmax=\"2000000000\"/>");
  Hostile("<worldbody>" + Repeated("<body>", 900) + "<geom size=\"1\"/>" + Repeated("</body>", 900) + "</worldbody>");
}

TEST_F(UserModelOfARun, IsRefusedIfItIsAnotherTasks) {
  const std::string models = "tests/env/gymnasium/";
  EXPECT_THAT(Refused("Walker2d-v5", models + "hopper.xml", " --set 'env.transforms=[scale]'"), HasSubstr("positions"));
  EXPECT_THAT(Refused("HalfCheetah-v5", models + "walker2d_v5.xml"), HasSubstr("another direction"));
  std::string text = Read(models + "reacher.xml");
  const size_t name = text.find("name=\"target\"");
  ASSERT_NE(name, std::string::npos);
  text.replace(name, 13, "name=\"there\"");
  EXPECT_THAT(Refused("Reacher-v5", folder_.Write("reacher.xml", text)), HasSubstr("has no body 'target'"));
  text = Read(models + "inverted_double_pendulum.xml");
  const size_t site = text.find("<site");
  ASSERT_NE(site, std::string::npos);
  text.erase(site, text.find("/>", site) + 2 - site);
  EXPECT_THAT(Refused("InvertedDoublePendulum-v5", folder_.Write("pendulum.xml", text)), HasSubstr("0 sites"));
}

TEST_F(UserModelOfARun, IsTheSameFromTheFirstStepToTheLastEvaluation) {
  std::string text = Read("tests/env/gymnasium/hopper.xml");
  const std::string path = folder_.Write("mine.xml", text);
  const std::string train = absl::StrCat(
      "exec \"$SKEIN_BIN/skein\" train --recipe none --env Hopper-v5 --name run --no-eval --set "
      "env.mujoco.xml_file=",
      path, " --set rollout.num_envs=4 --set rollout.envs_per_runner=4 --steps 10 --runs-dir ", folder_.path(),
      "/runs");
  Ended ended = RunToEnd("/bin/sh", {"-c", train});
  ASSERT_EQ(ended.code, 0) << ended.err;
  const size_t gear = text.find("gear=\"200");
  ASSERT_NE(gear, std::string::npos);
  text.replace(gear, 9, "gear=\"20");
  folder_.Write("mine.xml", text);

  const std::string eval = absl::StrCat("exec \"$SKEIN_BIN/skein\" eval --episodes 1 --checkpoint ", folder_.path(),
                                        "/runs/run --set env.mujoco.xml_digest=any");
  ended = RunToEnd("/bin/sh", {"-c", eval.substr(0, eval.find(" --set"))});
  EXPECT_EQ(ended.code, 65) << ended.out;
  EXPECT_EQ(std::count(ended.err.begin(), ended.err.end(), '\n'), 1) << ended.err;
  EXPECT_THAT(ended.err, HasSubstr("mine.xml: has changed"));
  ended = RunToEnd("/bin/sh", {"-c", eval});
  EXPECT_EQ(ended.code, 0) << ended.err;
  ended = RunToEnd("/bin/sh", {"-c", absl::StrReplaceAll(train, {{"--steps 10", "--steps 10000"}})});
  EXPECT_EQ(ended.code, 65) << ended.out;
  EXPECT_THAT(ended.err, HasSubstr("another configuration: env.mujoco.xml_digest"));
  const std::string exported = absl::StrCat(folder_.path(), "/policy.onnx");
  ended = RunToEnd("skein",
                   {"export", "--checkpoint", folder_.path() + "/runs/run", "--format", "onnx", "--out", exported});
  EXPECT_EQ(ended.code, 65) << ended.out;

  // As runs were before digests were kept; then with another file once more, which the user takes as it is.
  const std::string config = folder_.path() + "/runs/run/config.yaml";
  std::string kept = Read(config);
  const size_t line = kept.find("    xml_digest: ");
  ASSERT_NE(line, std::string::npos) << kept;
  kept.erase(line, kept.find('\n', line) + 1 - line);
  std::ofstream(config) << kept;
  ended = RunToEnd("/bin/sh", {"-c", absl::StrReplaceAll(train, {{"--steps 10", "--steps 20000"}})});
  EXPECT_EQ(ended.code, 0) << ended.err;
  folder_.Write("mine.xml", text + "\n");
  ended = RunToEnd(
      "/bin/sh", {"-c", absl::StrReplaceAll(train, {{"--steps 10", "--steps 30000 --set env.mujoco.xml_digest=any"}})});
  EXPECT_EQ(ended.code, 0) << ended.err;
}

TEST(ClipActionsForReward, IsRefusedWithoutMujoco) {
  const Ended ended =
      RunToEnd("skein", {"train", "--env", "CartPole-v1", "--set", "env.clip_actions_for_reward=false"});
  EXPECT_EQ(ended.code, 64) << ended.out;
  EXPECT_THAT(ended.err, HasSubstr("env.clip_actions_for_reward: CartPole-v1 is not a MuJoCo environment"));
}

}  // namespace
}  // namespace skein
