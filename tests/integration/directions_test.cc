// SPDX-License-Identifier: Apache-2.0
// Searches over directions, from the configuration file to the evaluated policy.
#include <sys/resource.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "gmock/gmock.h"
#include "tests/integration/run_files.h"
#include "tests/testing/program.h"
#include "tests/testing/wait_until.h"

namespace skein {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

constexpr char kArs[] = "configs/cartpole_ars.yaml", kEs[] = "configs/cartpole_es.yaml";

// `more`: arguments, separated by spaces.
std::vector<std::string> TrainArguments(const std::string& runs, const std::string& more, const std::string& config) {
  std::vector<std::string> arguments = {"train", "--config", config, "--runs-dir", runs, "--name", "run"};
  for (const absl::string_view argument : absl::StrSplit(more, ' ', absl::SkipEmpty()))
    arguments.emplace_back(argument);
  return arguments;
}

// Trains to the end.
Ended Train(const std::string& runs, const std::string& more, const std::string& config = kArs) {
  const Ended ended = RunToEnd("skein", TrainArguments(runs, more, config), absl::Minutes(2));
  EXPECT_EQ(ended.code, 0) << ended.out << ended.err;
  return ended;
}

class Recipes : public testing::TestWithParam<const char*> {};

TEST_P(Recipes, ReachTheirThreshold) {
  const ScratchFolder runs;
  const Ended ended = Train(runs.path(), "", GetParam());
  EXPECT_THAT(ended.err, IsEmpty());
  const std::string run = runs.path() + "/run";
  EXPECT_GE(ReadJson(run + "/eval.json").at("return_mean").get<double>(), 475);
  const v1::StepAccount account = Account(run);
  EXPECT_TRUE(Balances(account)) << account.ShortDebugString();
  EXPECT_GE(account.trained(), 200000u);
  EXPECT_EQ(account.pending() + account.rejected() + account.stale(), 0u);
}

INSTANTIATE_TEST_SUITE_P(Directions, Recipes, testing::Values(kArs, kEs));

// Some iterations with normalised observations.
constexpr char kShort[] = "--no-eval --set model.normalize_observations=true --set directions.num_dirs=16 --steps ";

std::string ShortDigest(const std::string& more) {
  const ScratchFolder runs;
  Train(runs.path(), absl::StrCat(kShort, "20000 ", more));
  EXPECT_TRUE(Balances(Account(runs.path() + "/run")));
  return Digest(runs.path() + "/run");
}

TEST(Directions, ResultsDoNotDependOnActorsOrChunks) {
  const std::string digest = ShortDigest("--runners 1");
  EXPECT_FALSE(digest.empty());
  EXPECT_EQ(ShortDigest("--runners 2 --actors 2"), digest);
  EXPECT_EQ(ShortDigest("--runners 16 --actors 16 --set directions.dir_chunk=1"), digest);
  EXPECT_EQ(ShortDigest("--runners 1 --set directions.dir_chunk=0"), digest);
  EXPECT_NE(ShortDigest("--runners 1 --seed 2"), digest);
}

// Steps of HalfCheetah-v5 take long enough to interrupt a run of them. `model`: settings of the policy.
struct Search {
  std::string config, model;
};

class Interrupted : public testing::TestWithParam<Search> {
 protected:
  static constexpr char kDone[] = "/run/checkpoints/step_000000064000/DONE";

  // 20 iterations of 16 directions x 2 signs x 100 steps, and a checkpoint after each fourth.
  std::string Arguments(const std::string& more) const {
    return absl::StrCat(
        "--env HalfCheetah-v5 --no-eval --steps 64000 --set checkpoint.interval_steps=12800 "
        "--set directions.num_dirs=16 --set directions.dir_chunk=2 --set directions.episode_length=100 "
        "--set model.normalize_observations=true --set ",
        GetParam().model, " ", more);
  }
  std::string Finish(const std::string& more) const {
    Train(runs_.path(), Arguments(more), GetParam().config);
    EXPECT_TRUE(Balances(Account(runs_.path() + "/run")));
    return Digest(runs_.path() + "/run");
  }
  // What a run without interruption gives.
  std::string Undisturbed(const std::string& more = "--runners 1") const {
    const ScratchFolder runs;
    Train(runs.path(), Arguments(more), GetParam().config);
    return Digest(runs.path() + "/run");
  }
  std::unique_ptr<Running> StartAndWaitForCheckpoint(const std::string& more) const {
    auto skein = std::make_unique<Running>("skein", TrainArguments(runs_.path(), Arguments(more), GetParam().config));
    EXPECT_TRUE(WaitUntil([&] { return skein->ended() || !NewestCheckpoint(runs_.path() + "/run").empty(); },
                          absl::Minutes(1)));
    EXPECT_FALSE(std::filesystem::exists(runs_.path() + kDone)) << "ended too early";
    return skein;
  }

  const ScratchFolder runs_;
};

TEST_P(Interrupted, ActorsAndChunksChangeNothing) {
  const std::string digest = Undisturbed();
  EXPECT_FALSE(digest.empty());
  EXPECT_EQ(Undisturbed("--runners 2 --actors 2 --set directions.dir_chunk=1"), digest);
  EXPECT_EQ(Undisturbed("--runners 16 --actors 16 --set directions.dir_chunk=1"), digest);
  EXPECT_NE(Undisturbed("--runners 1 --seed 2"), digest);
}

TEST_P(Interrupted, AnActorThatIsKilledChangesNothing) {
  const auto skein = StartAndWaitForCheckpoint("--runners 2 --actors 2");
  const auto actor = FindChild(skein->pid(), "skein-actor");
  ASSERT_TRUE(actor);
  kill(*actor, SIGKILL);
  EXPECT_EQ(skein->WaitForEnd(absl::Minutes(2)), 0);
  EXPECT_THAT(skein->Output(), HasSubstr("actors restarted: 1"));
  EXPECT_EQ(Digest(runs_.path() + "/run"), Undisturbed());
}

TEST_P(Interrupted, AStopInTheMiddleChangesNothing) {
  const auto skein = StartAndWaitForCheckpoint("--runners 2");
  skein->Signal(SIGTERM);
  EXPECT_EQ(skein->WaitForEnd(absl::Seconds(30)), 0);
  ASSERT_FALSE(std::filesystem::exists(runs_.path() + kDone)) << "ended too early";
  EXPECT_EQ(Finish("--runners 2"), Undisturbed());
}

INSTANTIATE_TEST_SUITE_P(Directions, Interrupted,
                         testing::Values(Search{kArs, "model.policy=linear"}, Search{kEs, "model.hidden=[8]"}),
                         [](const auto& info) { return info.param.config == kArs ? "ArsLinear" : "EsMlp"; });

// Also with other work orders than it began with.
TEST(Directions, AStoppedSearchGoesOnWithTheSameResult) {
  const ScratchFolder runs;
  Train(runs.path(), absl::StrCat(kShort, "10000"));
  const Ended ended = Train(runs.path(), absl::StrCat(kShort, "20000 --set directions.dir_chunk=8"));
  EXPECT_THAT(ended.out, HasSubstr("resuming at"));
  EXPECT_EQ(Digest(runs.path() + "/run"), ShortDigest(""));
}

// Pushes and another step size begin at exact iterations, on whatever actor.
TEST(Directions, PhasesBeginForAllDirectionsAtOnce) {
  const ScratchFolder runs, others, without;
  const std::string config = runs.Write("phases.yaml", R"(
env: {id: QuadrupedStand-v0, mujoco: {push_speed: 0.5, push_interval_range: [0.05, 0.1]}}
model: {policy: linear}
directions: {num_dirs: 4, episode_length: 40}
ars: {top_dirs: 2, step_size: 0.05}
phases:
  - until_steps: 2000
    set: {env.mujoco.push_speed: 0, ars.step_size: 0.1}
  - until_steps: 4000
    set: {env.mujoco.push_speed: 0}
)");
  Train(runs.path(), "--no-eval --steps 6400 --runners 1", config);
  Train(others.path(), "--no-eval --steps 6400 --runners 2 --actors 2", config);
  Train(without.path(), "--no-eval --steps 6400 --runners 1 --set phases=[]", config);
  EXPECT_EQ(Digest(runs.path() + "/run"), Digest(others.path() + "/run"));
  EXPECT_NE(Digest(runs.path() + "/run"), Digest(without.path() + "/run"));
  std::ifstream log(runs.path() + "/run/metrics.jsonl");
  uint64_t trained = 0;  // Before the iteration of the line.
  std::set<int> seen;
  for (std::string line; std::getline(log, line);) {
    const nlohmann::json json = nlohmann::json::parse(line);
    const int phase = trained < 2000 ? 1 : trained < 4000 ? 2 : 3;
    EXPECT_EQ(json["phase"], phase) << trained;
    EXPECT_NEAR(json["update"]["step_size"].get<double>(), phase == 1 ? 0.1 : 0.05, 1e-12) << trained;
    trained = json["env_steps"].get<uint64_t>();
    seen.insert(phase);
  }
  EXPECT_EQ(seen, (std::set<int>{1, 2, 3}));
}

// Stopped within the first phase, and gone on in the second and third.
TEST(Directions, AStopBeforeAPhaseChangesNothing) {
  for (const std::string mode : {"on_policy", "on_device"}) {
    const ScratchFolder whole, parts;
    const std::string config = whole.Write("phases.yaml", R"(
env: {id: CartPole-v1}
model: {policy: linear, normalize_observations: true}
directions: {num_dirs: 8, noise_std: 0.1}
ars: {top_dirs: 4, step_size: 0.05}
phases:
  - until_steps: 8000
    set: {ars.step_size: 0.1, directions.noise_std: 0.2}
  - until_steps: 14000
    set: {directions.noise_std: 0.05}
)");
    const auto train = [&](const ScratchFolder& runs, const std::string& steps) {
      Train(runs.path(), absl::StrCat("--no-eval --set sync.mode=", mode, " --steps ", steps), config);
    };
    train(whole, "20000");
    for (const char* const steps : {"4000", "10000", "20000"}) train(parts, steps);
    EXPECT_EQ(Digest(parts.path() + "/run"), Digest(whole.path() + "/run")) << mode;
  }
}

// Noise of a phase is that of the actors' directions and that by which the learner divides.
TEST(Directions, APhasesNoiseIsAsTheRunsOwn) {
  const std::string es = "env: {id: CartPole-v1}\nmodel: {hidden: [8]}\nes: {}\n";
  const auto digest = [](const std::string& yaml) {
    const ScratchFolder runs;
    Train(runs.path(), "--no-eval --steps 5000 --runners 1", runs.Write("mine.yaml", yaml));
    return Digest(runs.path() + "/run");
  };
  const std::string own = digest(es + "directions: {num_dirs: 8, noise_std: 0.2}\n");
  EXPECT_EQ(digest(es + "directions: {num_dirs: 8, noise_std: 0.05}\n"
                        "phases: [{until_steps: 1e6, set: {directions.noise_std: 0.2}}]\n"),
            own);
  EXPECT_NE(digest(es + "directions: {num_dirs: 8, noise_std: 0.05}\n"), own);
}

// Episodes of a phase end early on actors and on a device, and later ones of the same run do not.
TEST(Directions, APhasesEpisodeLengthIsAsTheRunsOwn) {
  for (const std::string mode : {"on_policy", "on_device"}) {
    const auto digest = [&](const std::string& directions, const std::string& phases) {
      const ScratchFolder runs;
      Train(runs.path(), absl::StrCat("--no-eval --steps 4000 --set sync.mode=", mode),
            runs.Write("mine.yaml", absl::StrCat("env: {id: CartPole-v1}\nmodel: {policy: linear}\nars: {}\n",
                                                 "directions: {num_dirs: 4", directions, "}\n", phases)));
      return Digest(runs.path() + "/run");
    };
    const auto until = [](const std::string& steps) {
      return absl::StrCat("phases: [{until_steps: ", steps, ", set: {directions.episode_length: 20}}]\n");
    };
    const std::string own = digest(", episode_length: 20", "");
    EXPECT_EQ(digest("", until("1e6")), own) << mode;
    EXPECT_EQ(digest(", episode_length: 200", until("1e6")), own) << mode;
    const std::string later = digest(", episode_length: 30", until("2000"));
    EXPECT_NE(later, own) << mode;
    EXPECT_NE(later, digest(", episode_length: 30", "")) << mode;
  }
}

// The step of ars knows no noise, so that the directions themselves must have less of it.
TEST(Directions, ANoiseScheduleReachesActorsAndDevices) {
  for (const std::string mode : {"on_policy", "on_device"}) {
    const auto digest = [&](const std::string& schedule) {
      const ScratchFolder runs;
      Train(runs.path(), absl::StrCat("--no-eval --steps 4000 --set directions.num_dirs=8 --set sync.mode=", mode,
                                      " --set directions.noise_schedule=", schedule));
      return Digest(runs.path() + "/run");
    };
    EXPECT_NE(digest("linear"), digest("constant")) << mode;
  }
}

// Of address space there is enough for the process but not for all worlds at once: it halves them, or says what it
// lacks.
TEST(Directions, ShortOfMemoryADeviceDoesNotHang) {
  const ScratchFolder runs;
  rlimit before = {};
  ASSERT_EQ(getrlimit(RLIMIT_AS, &before), 0);
  const rlimit limit = {2050000 * 1024ul, before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_AS, &limit), 0);
  const Ended ended = RunToEnd(
      "skein",
      TrainArguments(runs.path(),
                     "--no-eval --steps 1500000 --set sync.mode=on_device --set directions.num_dirs=16 --set "
                     "directions.dir_chunk=0 --set directions.num_envs=16384 --set directions.episode_length=3",
                     kArs),
      absl::Minutes(2));
  EXPECT_EQ(setrlimit(RLIMIT_AS, &before), 0);
  EXPECT_LT(ended.wall_time, absl::Minutes(1)) << ended.out << ended.err;
}

// With faults on demand (docs/fault-injection.md) in every process.
Ended TrainWithFaults(const std::string& runs, const std::string& faults, const std::string& more) {
  setenv("SKEIN_FAULTS", faults.c_str(), 1);
  const Ended ended = Train(runs, absl::StrCat(kShort, "20000 ", more));
  unsetenv("SKEIN_FAULTS");
  return ended;
}

TEST(FaultRow42, AnActorThatDiesIsReplacedAndChangesNothing) {
  const ScratchFolder runs;
  const Ended ended =
      TrainWithFaults(runs.path(), absl::StrCat("env:crash@at=3000,marker=", runs.path(), "/once"), "--runners 1");
  EXPECT_THAT(ended.out, HasSubstr("actors restarted: 1"));
  const v1::StepAccount account = Account(runs.path() + "/run");
  EXPECT_TRUE(Balances(account)) << account.ShortDebugString();
  EXPECT_EQ(Digest(runs.path() + "/run"), ShortDigest("--runners 1"));
}

TEST(FaultRow42, AnswersThatAreLostOrComeTwiceCountOnce) {
  for (const std::string fault : {"receipt:forget@p=0.1,seed=3", "receipt:drop@p=0.1,seed=4"}) {
    const ScratchFolder runs;
    TrainWithFaults(runs.path(), fault, "--runners 2 --actors 2");
    const v1::StepAccount account = Account(runs.path() + "/run");
    EXPECT_TRUE(Balances(account)) << fault << ": " << account.ShortDebugString();
    EXPECT_EQ(Digest(runs.path() + "/run"), ShortDigest("--runners 1")) << fault;
  }
}

// One observation of 20,000 is not finite.
TEST(FaultRow42, ADirectionThatObservesNoNumberIsDroppedAndCounted) {
  const ScratchFolder runs;
  TrainWithFaults(runs.path(), "env:nan@at=3000", "--runners 1");
  const v1::StepAccount account = Account(runs.path() + "/run");
  EXPECT_TRUE(Balances(account)) << account.ShortDebugString();
  EXPECT_EQ(account.lost() + account.rejected(), 0u);
  std::ifstream log(runs.path() + "/run/metrics.jsonl");
  double dropped = 0;
  for (std::string line; std::getline(log, line);) {
    dropped += nlohmann::json::parse(line)["update"]["dropped_directions"].get<double>();
  }
  EXPECT_EQ(dropped, 1);
}

// The other actor gets the directions of the one that hangs.
TEST(FaultRow42, ALateAnswerIsNotWaitedFor) {
  const ScratchFolder runs;
  const Ended ended = TrainWithFaults(runs.path(), absl::StrCat("env:hang@at=3000,marker=", runs.path(), "/once"),
                                      "--runners 2 --actors 2 --set rollout.step_timeout_seconds=60");
  EXPECT_LT(ended.wall_time, absl::Seconds(45));
  EXPECT_EQ(Digest(runs.path() + "/run"), ShortDigest("--runners 1"));
}

// A model of the inverted pendulum with `now` in place of `was`; its path.
std::string WriteModel(const ScratchFolder& folder, const std::string& was, const std::string& now) {
  std::ifstream file("env/mujoco/tasks/inverted_pendulum.xml");
  const std::string model{std::istreambuf_iterator<char>(file), {}};
  EXPECT_THAT(model, HasSubstr(was));
  return folder.Write("model.xml", absl::StrReplaceAll(model, {{was, now}}));
}

// A motor that tears the simulation apart: the iteration is repeated, then the run fails and says so.
TEST(Directions, WithoutAnyFiniteReturnTheRunFails) {
  const ScratchFolder folder;
  const std::string path = WriteModel(folder, "gear=\"100\"", "gear=\"1e20\"");
  const Ended ended =
      RunToEnd("skein", {"train", "--env", "InvertedPendulum-v5", "--recipe", "none", "--runs-dir", folder.path(),
                         "--name", "run", "--no-eval", "--set", "env.mujoco.xml_file=" + path, "--set",
                         "ars.top_dirs=2", "--set", "directions.num_dirs=4", "--set", "model.policy=linear"});
  EXPECT_NE(ended.code, 0) << ended.out;
  EXPECT_THAT(ended.err, HasSubstr("ars: all 4 directions of 2 iterations in a row have returns that are not finite"));
  EXPECT_EQ(std::count(ended.err.begin(), ended.err.end(), '\n'), 1) << ended.err;
}

// Refused in one line, by key and place in the file, before anything starts.
TEST(Directions, MistakesAreRefused) {
  const ScratchFolder folder;
  const auto mistake = [&](const std::string& yaml) {
    const std::string path = folder.path() + "/mine.yaml";
    std::ofstream(path) << yaml;
    const Ended ended = RunToEnd("skein", {"train", "--config", path, "--runs-dir", folder.path() + "/runs"});
    EXPECT_EQ(ended.code, 64) << ended.out << ended.err;
    EXPECT_EQ(std::count(ended.err.begin(), ended.err.end(), '\n'), 1) << ended.err;
    EXPECT_FALSE(std::filesystem::exists(folder.path() + "/runs"));
    return ended.err;
  };
  const std::string env = "env: {id: CartPole-v1}\n";
  const std::string unbounded = WriteModel(folder, "ctrlrange=\"-3 3\"", "ctrlrange=\"-1e6 1e6\"");
  EXPECT_THAT(mistake(env + "directions:\n  num_dirs: 8\nars:\n  top_dirs: 9\n"),
              HasSubstr("mine.yaml:5:13: ars.top_dirs (9) must not exceed directions.num_dirs (8)"));
  EXPECT_THAT(mistake(env + "directions:\n  num_dirs: 8\n  dir_chunk: 16\nars: {}\n"),
              HasSubstr("mine.yaml:4:14: directions.dir_chunk (16) must not exceed directions.num_dirs (8)"));
  EXPECT_THAT(mistake(env + "directions:\n  noise_std: 0\nes: {}\n"),
              HasSubstr("mine.yaml:3:14: directions.noise_std: must be greater than 0"));
  EXPECT_THAT(mistake("env: {id: UavNavigate-v0}\nars: {top_dirs: 1}\n"),
              HasSubstr("mine.yaml:1:11: env.id: UavNavigate-v0 has 10 agents; actors search over directions in "
                        "environments of one agent"));
  EXPECT_THAT(mistake(absl::StrCat("env:\n  id: InvertedPendulum-v5\n  mujoco: {xml_file: ", unbounded,
                                   "}\nars: {top_dirs: 1}\n")),
              HasSubstr("mine.yaml:2:7: env.id: element 0 of the actions of InvertedPendulum-v5 has no fixed bounds, "
                        "which a search over directions needs"));
  EXPECT_THAT(mistake(env + "ars: {top_dirs: 1}\nrollout: {num_envs: 8}\n"),
              HasSubstr("mine.yaml:3:21: rollout.num_envs (8) cannot be set with ars"));
}

}  // namespace
}  // namespace skein
