// SPDX-License-Identifier: Apache-2.0
// A mistake costs one line: what is wrong and where, the right exit code, nothing left half-written.
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "tests/integration/run_files.h"
#include "tests/testing/program.h"

namespace skein {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

namespace fs = std::filesystem;

constexpr char kCartPole[] = "configs/cartpole_ppo.yaml";
#if defined(SKEIN_SANITIZED)
constexpr absl::Duration kThreeSecondsAndStarting = absl::Seconds(10);  // Such programs take seconds to start.
#else
constexpr absl::Duration kThreeSecondsAndStarting = absl::Seconds(5);
#endif

class BadInput : public testing::Test {
 protected:
  // Runs skein and expects `code` after one line on standard error, which it returns without its end.
  std::string Mistake(int code, const std::vector<std::string>& arguments) {
    const Ended ended = RunToEnd("skein", arguments);
    std::string command = "skein";
    for (const std::string& argument : arguments) command += " " + argument;
    EXPECT_EQ(ended.code, code) << command << "\n" << ended.out << ended.err;
    EXPECT_EQ(std::count(ended.err.begin(), ended.err.end(), '\n'), 1) << command << "\n" << ended.err;
    EXPECT_THAT(ended.err, AllOf(Not(HasSubstr("terminate")), Not(HasSubstr("::")), Not(HasSubstr("Traceback"))));
    wall_time_ = ended.wall_time;
    return ended.err.substr(0, ended.err.find('\n'));
  }

  std::string MistakeInTrain(int code, std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), {"train", "--runs-dir", runs()});
    return Mistake(code, arguments);
  }

  std::string runs() const { return folder_.path() + "/runs"; }

  const ScratchFolder folder_;
  absl::Duration wall_time_;
};

TEST_F(BadInput, AnUnknownEnvironment) {
  EXPECT_THAT(
      MistakeInTrain(64, {"--env", "HalfCheetah-v6"}),
      AllOf(HasSubstr("'HalfCheetah-v6'"), HasSubstr("did you mean 'HalfCheetah-v5'"), HasSubstr("skein envs")));
  EXPECT_FALSE(fs::exists(runs()));
}

TEST_F(BadInput, FlagsThatDoNotExistOrDoNotParse) {
  EXPECT_THAT(MistakeInTrain(64, {"--no-such-flag"}), HasSubstr("--no-such-flag"));
  EXPECT_THAT(MistakeInTrain(64, {"--steps", "abc"}),
              AllOf(HasSubstr("--steps: got 'abc'"), HasSubstr("whole number")));
  EXPECT_THAT(MistakeInTrain(64, {"--steps", "0"}), HasSubstr("--steps: got '0'"));
  EXPECT_THAT(MistakeInTrain(64, {"--steps", "99999999999999999999"}), HasSubstr("--steps"));
  EXPECT_THAT(Mistake(64, {"trian"}), HasSubstr("no verb 'trian'"));
  EXPECT_FALSE(fs::exists(runs()));
}

TEST_F(BadInput, PhasesThatCannotBe) {
  const auto refused = [this](const std::string& env, const std::string& phases) {
    folder_.Write("phases.yaml", "env: {id: " + env + "}\nphases:\n" + phases);
    return MistakeInTrain(64, {"--config", folder_.path() + "/phases.yaml"});
  };
  EXPECT_THAT(refused("Hopper-v5", "  - {until_steps: 9}\n  - {until_steps: 8}\n"),
              AllOf(HasSubstr("phases.yaml:4:"), HasSubstr("phases[1].until_steps: must be greater than 9")));
  EXPECT_THAT(refused("Hopper-v5", "  - until_steps: 9\n    set: {model.hidden: [3]}\n"),
              AllOf(HasSubstr("phases.yaml:4:11: phases[0].set.model.hidden"), HasSubstr("cannot change")));
  EXPECT_THAT(refused("CartPole-v1", "  - {until_steps: 9, set: {env.mujoco.push_speed: 1}}\n"),
              AllOf(HasSubstr("phases[0].set: "), HasSubstr("CartPole-v1 is not a MuJoCo environment")));
  EXPECT_FALSE(fs::exists(runs()));
}

TEST_F(BadInput, TransformsThatDoNotFitTheEnvironment) {
  EXPECT_THAT(MistakeInTrain(64, {"--env", "CartPole-v1", "--set", "env.hide=[4]"}),
              HasSubstr("env.hide: '4' is not there: observations of CartPole-v1 have the columns 0-3"));
  EXPECT_THAT(MistakeInTrain(64, {"--env", "UavNavigate-v0", "--set", "env.hide=velocities"}),
              HasSubstr("'velocities' are not known of UavNavigate-v0"));
  EXPECT_THAT(MistakeInTrain(64, {"--env", "CartPole-v1", "--set", "env.transforms=[scale]"}),
              HasSubstr("env.transforms[0]: actions of CartPole-v1 are choices"));
  EXPECT_FALSE(fs::exists(runs()));
}

TEST_F(BadInput, NoPolicyToTakeAway) {
  const std::string nothing = folder_.path() + "/nothing", file = folder_.path() + "/policy";
  EXPECT_THAT(Mistake(65, {"export", "--checkpoint", nothing, "--format", "onnx", "--out", file}), HasSubstr(nothing));
  EXPECT_THAT(Mistake(64, {"export", "--checkpoint", nothing, "--format", "onyx"}), HasSubstr("skein export: "));
  EXPECT_THAT(Mistake(64, {"export", "--checkpoint", nothing, "--format", "c", "--out", "-"}),
              HasSubstr("want a file"));
  EXPECT_THAT(Mistake(74, {"export", "--checkpoint", nothing, "--format", "c", "--out", nothing + "/sub/policy.h"}),
              HasSubstr(nothing + "/sub/policy.h"));
  EXPECT_THAT(Mistake(64, {"export", "--checkpoint", nothing, "--format", "c", "--out", "/tmp"}),
              HasSubstr("is no regular file"));
  const std::string pipe = file + ".pipe";
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  EXPECT_THAT(Mistake(64, {"export", "--checkpoint", nothing, "--format", "c", "--out", pipe}),
              HasSubstr("is there and is no regular file"));
  EXPECT_EQ(std::filesystem::status(pipe).type(), std::filesystem::file_type::fifo);
  EXPECT_THAT(Mistake(64, {"export", "--checkpoint", nothing, "--format", "onyx"}), HasSubstr("--format"));
  EXPECT_THAT(Mistake(64, {"export", "--checkpoint", nothing, "--format", "c", "--name", "1x"}), HasSubstr("--name"));
  EXPECT_THAT(Mistake(65, {"serve", "--checkpoint", nothing}), HasSubstr(nothing));
  EXPECT_FALSE(fs::exists(file));
}

TEST_F(BadInput, RunsThatAreNot) {
  EXPECT_THAT(Mistake(65, {"runs", "list", "--runs-dir", runs()}), HasSubstr("no such folder of runs"));
  fs::create_directories(runs() + "/cheetah");
  std::ofstream(runs() + "/cheetah/config.yaml") << "env: {id: HalfCheetah-v5}\n";
  EXPECT_THAT(Mistake(65, {"runs", "show", "chetah", "--runs-dir", runs()}), HasSubstr("the nearest is 'cheetah'"));
  EXPECT_THAT(Mistake(64, {"runs", "remove", "../runs", "--yes", "--runs-dir", runs()}), HasSubstr("no name of a run"));
  EXPECT_THAT(Mistake(64, {"runs", "remove", "cheetah", "--runs-dir", runs()}), HasSubstr("nothing was removed"));
  fs::create_directories(runs() + "/unread");
  std::ofstream(runs() + "/unread/config.yaml") << "env: {id: [}\n";
  EXPECT_EQ(RunToEnd("skein", {"runs", "remove", "unread", "--yes", "--runs-dir", runs()}).code, 0);
  EXPECT_FALSE(fs::exists(runs() + "/unread"));
  EXPECT_THAT(Mistake(65, {"runs", "plot", "cheetah", "--runs-dir", runs()}), HasSubstr("has no iteration yet"));
  EXPECT_TRUE(fs::exists(runs() + "/cheetah/config.yaml"));
  std::ofstream(runs() + "/cheetah/config.yaml") << "env: {id: [}\n";
  const Ended listed = RunToEnd("skein", {"runs", "list", "--runs-dir", runs()});
  EXPECT_EQ(listed.code, 0);
  EXPECT_THAT(listed.err, HasSubstr("cheetah/config.yaml"));
  EXPECT_THAT(listed.out, HasSubstr("no run can be read in"));
  fs::remove_all(runs() + "/cheetah");
  EXPECT_THAT(RunToEnd("skein", {"runs", "list", "--runs-dir", runs()}).out, HasSubstr("no runs in"));
}

TEST_F(BadInput, WeightsThatAreNotThereOrDoNotFit) {
  EXPECT_THAT(MistakeInTrain(65, {"--config", kCartPole, "--init-from", folder_.path() + "/nothing", "--no-eval"}),
              HasSubstr("learner.init_from"));
  EXPECT_FALSE(fs::exists(runs()));
  fs::create_directories(runs() + "/x");
  EXPECT_THAT(
      MistakeInTrain(64, {"--config", kCartPole, "--name", "x", "--resume", "never", "--init-from", runs() + "/x"}),
      HasSubstr("which --resume never moves"));
  EXPECT_TRUE(fs::is_empty(runs() + "/x"));
  EXPECT_THAT(MistakeInTrain(64, {"--config", kCartPole, "--init-optimizer"}), HasSubstr("--init-from"));
}

TEST_F(BadInput, APortInUse) {
  Running coordinator("skein-coordinator", {"--listen", "127.0.0.1:0", "--http", "127.0.0.1:0"});
  const std::string port = coordinator.WaitForOutput("listening grpc=127.0.0.1:(\\d+)");
  for (const char* verb : {"train", "head"}) {
    for (const char* flag : {"--port", "--http-port"}) {
      std::vector<std::string> arguments = {verb, "--config", kCartPole, "--runs-dir", runs(), flag, port};
      if (std::string(verb) == "head") arguments.insert(arguments.end(), {"--name", "head"});
      EXPECT_THAT(Mistake(69, arguments), HasSubstr("port " + port + " is in use"));
      EXPECT_LT(wall_time_, absl::Seconds(2));
    }
  }
  // What is left does not stand in the way.
  EXPECT_EQ(NewestCheckpoint(runs() + "/CartPole-v1-s1"), "");
  EXPECT_EQ(
      RunToEnd("skein", {"train", "--config", kCartPole, "--runs-dir", runs(), "--steps", "2048", "--no-eval"}).code,
      0);
}

TEST_F(BadInput, AnAddressNobodyAnswers) {
  EXPECT_THAT(Mistake(69, {"worker", "--address", "127.0.0.1:1", "--timeout", "3s"}),
              AllOf(HasSubstr("127.0.0.1:1"), HasSubstr("3s"), HasSubstr("skein head")));
  EXPECT_GE(wall_time_, absl::Seconds(3));
  EXPECT_LT(wall_time_, kThreeSecondsAndStarting);
  EXPECT_THAT(Mistake(69, {"status", "--address", "127.0.0.1:1"}), HasSubstr("127.0.0.1:1"));
}

TEST_F(BadInput, AMissingCheckpoint) {
  EXPECT_THAT(Mistake(65, {"eval", "--checkpoint", folder_.path() + "/nowhere"}), HasSubstr("/nowhere"));
  EXPECT_THAT(Mistake(65, {"eval", "--checkpoint", folder_.path()}), HasSubstr(folder_.path()));
  EXPECT_THAT(MistakeInTrain(65, {"--config", kCartPole, "--resume", "must"}), HasSubstr("no complete checkpoint"));
  EXPECT_FALSE(fs::exists(runs()));
}

TEST_F(BadInput, ACorruptCheckpoint) {
  const std::vector<std::string> train = {"train", "--config", kCartPole, "--runs-dir",
                                          runs(),  "--name",   "run",     "--no-eval"};
  std::vector<std::string> shorter = train;
  shorter.insert(shorter.end(), {"--steps", "2048"});
  ASSERT_EQ(RunToEnd("skein", shorter).code, 0);
  const std::string checkpoint = NewestCheckpoint(runs() + "/run");
  const std::string model = checkpoint + "/model.safetensors";
  std::ifstream in(model, std::ios::binary);
  std::string bytes{std::istreambuf_iterator<char>(in), {}};
  bytes.back() = static_cast<char>(bytes.back() ^ 1);
  std::ofstream(model, std::ios::binary) << bytes;

  EXPECT_THAT(Mistake(65, {"eval", "--checkpoint", checkpoint}), AllOf(HasSubstr(model), HasSubstr("checksum")));
  for (const char* resume : {"must", "auto"}) {
    std::vector<std::string> longer = train;
    longer.insert(longer.end(), {"--steps", "4096", "--resume", resume});
    EXPECT_THAT(Mistake(65, longer), AllOf(HasSubstr(model), HasSubstr("checksum")));
  }
  // Neither replaced nor added to.
  EXPECT_EQ(NewestCheckpoint(runs() + "/run"), checkpoint);
}

}  // namespace
}  // namespace skein
