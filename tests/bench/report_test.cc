// SPDX-License-Identifier: Apache-2.0
// What reports of `skein bench` are made of.
#include "bench/report.h"

#include <unistd.h>

#include <atomic>
#include <cmath>
#include <filesystem>
#include <limits>

#include "base/process/exit_code.h"
#include "bench/env_loops.h"
#include "bench/machine.h"
#include "bench/measure_rate.h"
#include "bench/options.h"
#include "bench/process_cpu.h"
#include "bench/progress_line.h"
#include "bench/rounds.h"
#include "bench/statistics.h"
#include "bench/temporary_folder.h"
#include "env/mujoco/bare_loop.h"
#include "env/registry.h"
#include "env/transform/transform_options.h"
#include "env/vector_env.h"
#include "gmock/gmock.h"
#include "tests/cli/scratch_folder.h"

namespace skein {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

TEST(Median, IsTheMiddleOrTheMeanOfTheMiddleTwo) {
  EXPECT_EQ(Median({7}), 7);
  EXPECT_EQ(Median({9, 1, 4}), 4);
  EXPECT_EQ(Median({8, 1, 4, 2}), 3);  // (2 + 4) / 2
}

TEST(MedianOfRows, TakesFiniteNumbersThatEveryRowHas) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const std::vector<Json> rows = {{{"round", 1}, {"a", 1}, {"b", 1}, {"c", nan}, {"name", "x"}, {"in", {{"d", 2}}}},
                                  {{"round", 2}, {"a", 5.5}, {"c", 3}, {"name", "y"}, {"in", {{"d", 4}, {"e", 1}}}}};
  // a: (1 + 5.5) / 2; d: (2 + 4) / 2.
  EXPECT_EQ(MedianOfRows(rows), (Json{{"a", 3.25}, {"in", {{"d", 3.0}}}}));
  EXPECT_EQ(MedianOfRows({}), Json::object());
}

TEST(Summarize, TheRatioIsThatOfTheMedians) {
  const std::vector<Json> rows = {{{"rate", 1}, {"limit_rate", 4}, {"ratio", 0.25}},
                                  {{"rate", 3}, {"limit_rate", 4}, {"ratio", 0.75}},
                                  {{"rate", 2}, {"limit_rate", 8}, {"ratio", 0.25}}};
  const Json summary = Summarize(rows, "rate", "limit_rate");
  EXPECT_EQ(summary["rate"], 2);
  EXPECT_EQ(summary["limit_rate"], 4);
  EXPECT_EQ(summary["ratio"], 0.5);  // 2 / 4, not the median of ratios.
  EXPECT_EQ(summary["spread"]["rate"], (Json{{"min", 1.0}, {"max", 3.0}}));
  EXPECT_EQ(summary["spread"]["limit_rate"], (Json{{"min", 4.0}, {"max", 8.0}}));
  EXPECT_EQ(summary["spread"]["ratio"], (Json{{"min", 0.25}, {"max", 0.75}}));
}

struct FakeContest : Contest {
  FakeContest() {
    rate = "rate";
    ours_title = "ours";
    limit_title = "limit";
    ours = [this](absl::Duration seconds) -> absl::StatusOr<Json> {
      calls.push_back("ours");
      return Json{{"rate", absl::ToDoubleSeconds(seconds)}, {"more", 1}};
    };
    limit = [this](absl::Duration) -> absl::StatusOr<Json> {
      calls.push_back("limit");
      return Json{{"limit_rate", 4.0}};
    };
  }
  std::vector<std::string> calls;
};

bool Never() { return false; }

TEST(RunRounds, TakesTurnsAtBeingFirst) {
  FakeContest contest;
  ProgressLine silent(stderr, 0);
  const auto rows = RunRounds(contest, 3, absl::Seconds(2), Never, &silent);
  ASSERT_TRUE(rows.ok()) << rows.status();
  EXPECT_THAT(contest.calls, ElementsAre("limit", "ours", "ours", "limit", "limit", "ours"));
  ASSERT_EQ(rows->size(), 3u);
  EXPECT_EQ(rows->at(1), (Json{{"round", 2}, {"rate", 2.0}, {"more", 1}, {"limit_rate", 4.0}, {"ratio", 0.5}}));
}

TEST(RunRounds, TheRatioMayBeToADerivedFigure) {
  FakeContest contest;
  contest.reference = "half_limit";
  contest.derive = [](Json* row) { (*row)["half_limit"] = row->at("limit_rate").get<double>() / 2; };
  ProgressLine silent(stderr, 0);
  const auto rows = RunRounds(contest, 1, absl::Seconds(2), Never, &silent);
  ASSERT_TRUE(rows.ok()) << rows.status();
  EXPECT_EQ(rows->at(0)["ratio"], 1);  // 2 / (4 / 2)
}

TEST(RunRounds, EndsWithTheFirstErrorOrRequest) {
  ProgressLine silent(stderr, 0);
  FakeContest failing;
  failing.ours = [](absl::Duration) -> absl::StatusOr<Json> { return absl::UnavailableError("gone"); };
  EXPECT_EQ(RunRounds(failing, 2, absl::Seconds(1), Never, &silent).status().code(), absl::StatusCode::kUnavailable);
  FakeContest standing;
  standing.ours = [](absl::Duration) -> absl::StatusOr<Json> { return Json{{"rate", 0.0}}; };
  EXPECT_EQ(RunRounds(standing, 2, absl::Seconds(1), Never, &silent).status().code(), absl::StatusCode::kInternal);
  FakeContest stopped;
  const auto after_two = [&] { return stopped.calls.size() >= 2; };
  EXPECT_EQ(RunRounds(stopped, 9, absl::Seconds(1), after_two, &silent).status().code(), absl::StatusCode::kCancelled);
  EXPECT_EQ(stopped.calls.size(), 2u);
}

TEST(ProgressLine, IsShownOnTerminalsOnlyAndTakenAway) {
  const ScratchFolder folder;
  const std::string path = folder.path() + "/out";
  std::FILE* out = std::fopen(path.c_str(), "w");
  ProgressLine(out, 0).Show("unseen", absl::Seconds(1));
  {
    ProgressLine line(out, 30);
    line.Show("round 1", absl::Seconds(61));
    line.Show("a text that is longer than the terminal is wide", -absl::Seconds(1));
  }
  std::fclose(out);
  EXPECT_THAT(folder.Read("out"), AllOf(HasSubstr("round 1, about 1m01s left"),
                                        HasSubstr("a text that is longer than th\r"), Not(HasSubstr("unseen"))));
}

TEST(FormatFigure, SuitsItsSize) {
  EXPECT_EQ(FormatFigure(1234567.6), "1,234,568");
  EXPECT_EQ(FormatFigure(-4321.0), "-4,321");
  EXPECT_EQ(FormatFigure(0.98765), "0.9877");
  EXPECT_EQ(FormatFigure(3), "3");
  EXPECT_EQ(FormatFigure(Json()), "-");
  EXPECT_EQ(FormatFigure(std::numeric_limits<double>::infinity()), "-");
}

Report SampleReport() {
  Report report;
  report.machine = {{"cpu", "A CPU"}, {"cores", 2}, {"load_average", {0.5, 0.4, 0.3}}};
  report.config = {{"verb", "env"}};
  report.rows = {
      {{"round", 1}, {"rate", 1500.0}, {"limit_rate", 2000.0}, {"ratio", 0.75}, {"stage", {{"wait", 0.125}}}}};
  report.summary = Summarize(report.rows, "rate", "limit_rate");
  return report;
}

TEST(FormatReport, HasRoundsMediansAndEverythingElse) {
  const std::string text = FormatReport(SampleReport(), "what is compared", {{"rate", "ours"}, {"ratio", "ratio"}});
  EXPECT_THAT(text, AllOf(HasSubstr("what is compared\n"), HasSubstr("A CPU"), HasSubstr("load average 0.50"),
                          HasSubstr("round             ours          ratio\n1                1,500           0.75\n"),
                          HasSubstr("\nmedian           1,500           0.75\n"), HasSubstr("\nmax "),
                          HasSubstr("stage.wait"), HasSubstr("0.125")));
}

TEST(WriteReport, HasExactlyFourKeys) {
  const ScratchFolder folder;
  ASSERT_TRUE(WriteReport(SampleReport(), folder.path() + "/r.json").ok());
  const Json json = Json::parse(folder.Read("r.json"));
  std::vector<std::string> keys;
  for (const auto& item : json.items()) keys.push_back(item.key());
  EXPECT_THAT(keys, ElementsAre("machine", "config", "summary", "rows"));
  EXPECT_EQ(json["rows"][0]["rate"], 1500);
}

TEST(CheckWritable, FindsOutBeforeMeasuring) {
  const ScratchFolder folder;
  EXPECT_TRUE(CheckWritable("").ok());
  EXPECT_TRUE(CheckWritable(folder.path() + "/new.json").ok());
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
  for (const std::string& path : {folder.path(), folder.path() + "/no/such/folder.json"}) {
    const absl::Status status = CheckWritable(path);
    EXPECT_EQ(ExitCodeOf(status), kExitIo) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr(path));
  }
}

TEST(ReadBenchConfig, LaterFlagsWin) {
  BenchOptions options;
  options.env_id = "CartPole-v1";
  options.seed = 5;
  options.overrides = {"seed=7", "rollout.envs_per_runner=3"};
  const auto config = ReadBenchConfig(options);
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->env().id(), "CartPole-v1");
  EXPECT_EQ(config->seed(), 7u);
  EXPECT_EQ(config->rollout().envs_per_runner(), 3u);
}

TEST(ReadBenchConfig, RefusesWhatDoesNotExist) {
  BenchOptions options;
  options.env_id = "HalfCheetah-v6";
  EXPECT_EQ(ReadBenchConfig(options).status().code(), absl::StatusCode::kInvalidArgument);
  options.env_id = "";
  options.overrides = {"ppo.learning_rate=1"};
  EXPECT_EQ(ReadBenchConfig(options).status().code(), absl::StatusCode::kInvalidArgument);
}

TEST(PlanBenchRun, ResolvesTheRun) {
  BenchOptions options;
  options.env_id = "CartPole-v1";
  const auto plan = PlanBenchRun(options, "2");
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_EQ(plan->config.rollout().num_envs(), 2 * plan->config.rollout().envs_per_runner());
  EXPECT_THAT(plan->actor_runners, ElementsAre(2));
  EXPECT_EQ(PlanBenchRun(options, "none").status().code(), absl::StatusCode::kInvalidArgument);
}

TEST(DescribeConfig, NamesSettingsAsTheConfigurationDoes) {
  BenchOptions options;
  options.overrides = {"rollout.envs_per_runner=8"};
  const Json json = DescribeConfig("env", options, *ReadBenchConfig(options));
  EXPECT_EQ(json["verb"], "env");
  EXPECT_EQ(json["rounds"], 5);
  EXPECT_EQ(json["run"]["rollout"]["envs_per_runner"], 8);
}

TEST(DescribeMachine, KnowsThisOne) {
  const Json machine = DescribeMachine("1.2.3");
  EXPECT_GE(machine["cores"].get<int>(), 1);
  EXPECT_GT(machine["memory_bytes"].get<uint64_t>(), 0u);
  EXPECT_EQ(machine["libtorch"], "1.2.3");
  EXPECT_EQ(machine["mujoco"], MujocoVersion());
  EXPECT_EQ(machine["load_average"].size(), 3u);
  for (const char* key : {"cpu", "os", "compiler", "grpc"}) EXPECT_NE(machine[key], "") << key;
}

TEST(ValueOfLine, ReadsTheKindsOfFilesThereAre) {
  EXPECT_EQ(ValueOfLine("a\nmodel name\t: A CPU 3000\nmodel name\t: B\n", "model name"), "A CPU 3000");
  EXPECT_EQ(ValueOfLine("NAME=x\nPRETTY_NAME=\"An OS 1\"\n", "PRETTY_NAME"), "An OS 1");
  EXPECT_EQ(ValueOfLine("a: b\n", "c"), "");
}

TEST(MeasureRate, AddsUpThreads) {
  std::atomic<int> first{0}, second{0};
  const auto count = [](std::atomic<int>* calls) {
    return [calls]() -> int64_t {
      ++*calls;
      return 3;
    };
  };
  EXPECT_GT(MeasureRate({count(&first), count(&second)}, absl::Milliseconds(5)), 0);
  EXPECT_GT(first, 0);
  EXPECT_GT(second, 0);
}

TEST(CpuSecondsOfOthers, LeavesTheBusiestOut) {
  const std::map<pid_t, double> before = {{1, 1.0}, {2, 5.0}, {3, 0.5}};
  const std::map<pid_t, double> after = {{1, 3.0}, {2, 6.0}, {3, 0.75}, {4, 0.125}};
  EXPECT_EQ(CpuSecondsOfOthers(before, after, 0), 3.375);  // 2 + 1 + 0.25 + 0.125
  EXPECT_EQ(CpuSecondsOfOthers(before, after, 2), 0.375);
  EXPECT_EQ(CpuSecondsOfOthers(before, after, 9), 0);
  EXPECT_FALSE(ThreadCpuSeconds(getpid()).empty());
  EXPECT_THAT(ThreadCpuSeconds(0), IsEmpty());
  EXPECT_GE(OwnCpuSeconds(), 0);
}

TEST(TemporaryFolder, GoesWithWhatIsInIt) {
  std::string path;
  {
    auto made = TemporaryFolder::Make();
    ASSERT_TRUE(made.ok()) << made.status();
    const TemporaryFolder folder = *std::move(made);
    path = folder.path();
    std::filesystem::create_directories(path + "/a/b");
  }
  EXPECT_FALSE(std::filesystem::exists(path));
}

TEST(RandomActions, StayWithinBounds) {
  const auto pendulum = MakeEnv("Pendulum-v1");
  ASSERT_TRUE(pendulum.ok());
  const EnvSpec& spec = (*pendulum)->spec();
  for (float action : RandomActions(spec, 50, 2, 1)) {
    EXPECT_GE(action, spec.action_low[0]);
    EXPECT_LE(action, spec.action_high[0]);
  }
  const auto cartpole = MakeEnv("CartPole-v1");
  ASSERT_TRUE(cartpole.ok());
  EXPECT_THAT(RandomActions((*cartpole)->spec(), 50, 1, 1), testing::Each(testing::AnyOf(0.0f, 1.0f)));
}

TEST(EnvLimit, IsPhysicsWhereThereIsPhysics) {
  BenchOptions options;
  for (const auto& [env, what] : {std::pair{"HalfCheetah-v5", "mj_step"}, {"CartPole-v1", "Env::Step"}}) {
    options.env_id = env;
    const auto config = ReadBenchConfig(options);
    ASSERT_TRUE(config.ok()) << config.status();
    const auto limit = EnvLimit::Make(*config, 2);
    ASSERT_TRUE(limit.ok()) << limit.status();
    EXPECT_EQ((*limit)->what(), what);
    EXPECT_GT((*limit)->Measure(absl::Milliseconds(2)), 0);
    const auto ours = VectorEnvLoops::Make(*config, 2);
    ASSERT_TRUE(ours.ok()) << ours.status();
    EXPECT_GT((*ours)->Measure(absl::Milliseconds(2)), 0);
  }
}

TEST(EnvLimit, EachSimulationHasRowsOfItsOwn) {
  constexpr int64_t kRows = 16'000;
  for (const int64_t size : {1, 2, 7, 16}) {
    int64_t end = 0;
    for (int64_t e = 0; e < size; ++e) {
      const SimulationRows rows = RowsOfSimulation(e, size, kRows);
      EXPECT_EQ(rows.first, end);
      EXPECT_EQ(rows.count, kRows / size);
      end = rows.first + rows.count;
    }
    EXPECT_LE(end, kRows);
  }
  for (const int64_t size : {17, 64, 1000, 65'536}) {
    const SimulationRows last = RowsOfSimulation(15, size, kRows);
    EXPECT_EQ(last.first, 15 * (kRows / size));
    EXPECT_EQ(last.count, 1000);
    EXPECT_LE(last.first + last.count, kRows);
  }
}

TEST(EnvLimit, AgentsCountWhileTheyAreAlive) {
  BenchOptions options;
  options.env_id = "UavNavigate-v0";
  const auto config = ReadBenchConfig(options);
  ASSERT_TRUE(config.ok()) << config.status();
  const auto limit = EnvLimit::Make(*config, 1);
  ASSERT_TRUE(limit.ok()) << limit.status();
  const auto ours = VectorEnvLoops::Make(*config, 1);
  ASSERT_TRUE(ours.ok()) << ours.status();
  for (const StepRates& rates :
       {(*limit)->MeasureRates(absl::Milliseconds(2)), (*ours)->MeasureRates(absl::Milliseconds(2))}) {
    // All ten are alive in the first steps, at least one in each.
    EXPECT_GT(rates.agent_steps_per_second, rates.env_steps_per_second);
    EXPECT_LE(rates.agent_steps_per_second, 10 * rates.env_steps_per_second);
  }
}

TEST(TransformActions, GivesThePhysicsWhatTheEnvironmentGets) {
  constexpr int kWidth = 6;
  VectorEnv::Options options;
  options.env_id = "HalfCheetah-v5";
  options.env.transforms = {{.setting = "a", .kind = TransformOptions::Kind::kSquash}};
  std::vector<float> actions = {0, 1, -1, 20, -20, 0.5f, 3, 0, 0, 0, 0, -3};
  const std::vector<float> policys = actions;
  ASSERT_TRUE(TransformActions(options, kWidth, &actions).ok());
  for (size_t i = 0; i < actions.size(); ++i) EXPECT_FLOAT_EQ(actions[i], std::tanh(policys[i]));

  options.env.transforms.clear();
  actions = policys;
  ASSERT_TRUE(TransformActions(options, kWidth, &actions).ok());
  EXPECT_EQ(actions, policys);
  options.env.transforms = {{.setting = "a", .kind = TransformOptions::Kind::kHide, .columns = {"99"}}};
  EXPECT_EQ(TransformActions(options, kWidth, &actions).code(), absl::StatusCode::kInvalidArgument);
}

// One step of both simulates the same time.
TEST(BareLoop, StepsAsTheEnvironmentDoes) {
  const auto made = MakeEnv("HalfCheetah-v5");
  ASSERT_TRUE(made.ok()) << made.status();
  Env& env = **made;
  RandomStream random(3, RandomPurpose::kEnvReset, 4, 0);
  env.Reset(random);
  const std::vector<float> actions = RandomActions(env.spec(), 5, env.spec().action_size, 1);
  float reward = 0;
  for (int i = 0; i < 7; ++i) env.Step(actions.data() + i % 5 * env.spec().action_size, &reward);
  std::vector<double> state(env.spec().state_size);
  env.SaveState(state.data());

  const auto bare = BareLoop::Make("HalfCheetah-v5", {.seed = 3, .env_index = 4, .episode_steps = {9, 2}});
  ASSERT_TRUE(bare.ok()) << bare.status();
  (*bare)->Run(actions.data(), 5, 3);
  (*bare)->Run(actions.data(), 5, 4);
  EXPECT_EQ((*bare)->time(), state[0]);
  (*bare)->Run(actions.data(), 5, 2);  // 9 steps: the end of the first episode.
  EXPECT_EQ((*bare)->time(), 0);
  (*bare)->Run(actions.data(), 5, 1);
  EXPECT_GT((*bare)->time(), 0);
  (*bare)->Run(actions.data(), 5, 1);  // The end of the second one, after which the first follows.
  EXPECT_EQ((*bare)->time(), 0);
  (*bare)->Run(actions.data(), 5, 7);
  EXPECT_EQ((*bare)->time(), state[0]);
  EXPECT_EQ(BareLoop::Make("CartPole-v1", {}).status().code(), absl::StatusCode::kNotFound);
}

TEST(EpisodeSteps, AreThoseOfTheVectorEnvsEpisodes) {
  constexpr int kRows = 300, kLimit = 15;
  constexpr uint64_t kSeed = 5, kFirstEnv = 3;
  const auto envs = VectorEnv::Make({.env_id = "Hopper-v5", .size = 2, .seed = kSeed, .max_episode_steps = kLimit});
  ASSERT_TRUE(envs.ok()) << envs.status();
  (*envs)->ResetAll(kFirstEnv);
  const int width = (*envs)->spec().action_size;
  const std::vector<float> actions = RandomActions((*envs)->spec(), 2 * kRows, width, 1);
  const float* const first_rows[] = {actions.data(), actions.data() + kRows * width};
  std::vector<std::vector<int>> want(2);
  std::vector<int> begun(2);
  for (int row = 0; row < kRows; ++row) {
    std::vector<float> step(first_rows[0] + row * width, first_rows[0] + (row + 1) * width);
    step.insert(step.end(), first_rows[1] + row * width, first_rows[1] + (row + 1) * width);
    const VectorEnv::StepResult result = (*envs)->Step(step.data());
    for (int e = 0; e < 2; ++e) {
      if (row + 1 < kRows && !result.terminated[e] && !result.truncated[e]) continue;
      want[e].push_back(row + 1 - begun[e]);
      begun[e] = row + 1;
    }
  }

  const auto env = MakeEnv("Hopper-v5");
  ASSERT_TRUE(env.ok()) << env.status();
  for (int e = 0; e < 2; ++e) {
    EXPECT_EQ(EpisodeSteps(**env, kSeed, kFirstEnv + e, kLimit, first_rows[e], kRows), want[e]);
  }
  EXPECT_NE(want[0], want[1]);
  want[0].pop_back();  // Ends with the rows.
  EXPECT_THAT(want[0], testing::Contains(kLimit));
  EXPECT_THAT(want[0], testing::Contains(testing::Lt(kLimit)));
}

}  // namespace
}  // namespace skein
