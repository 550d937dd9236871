// SPDX-License-Identifier: Apache-2.0
// Every MuJoCo task against the real Gymnasium: trajectories of scripts/make_env_golden.py, which says how to make
// others than those of tests/env/golden.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <limits>
#include <map>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_format.h"
#include "env/mujoco/library.h"
#include "env/mujoco/mujoco_env.h"
#include "env/registry.h"
#include "nlohmann/json.hpp"
#include "tests/env/golden_actions.h"
#include "tests/env/mujoco_warnings.h"

namespace skein {
namespace {

// "half_cheetah" for "HalfCheetah-v5".
std::string FileName(const std::string& env_id) {
  std::string name;
  for (const char c : env_id.substr(0, env_id.find('-'))) {
    if (absl::ascii_isupper(static_cast<unsigned char>(c)) && !name.empty()) name += '_';
    name += absl::ascii_tolower(static_cast<unsigned char>(c));
  }
  return name;
}

// A number; JSON has no infinity.
double Number(const nlohmann::json& value) {
  if (!value.is_string()) return value.get<double>();
  const std::string text = value;
  EXPECT_THAT(text, testing::AnyOf("inf", "-inf"));
  return std::copysign(std::numeric_limits<double>::infinity(), text == "inf" ? 1.0 : -1.0);
}

// The arguments of a trajectory, as Gymnasium had them.
EnvOptions OptionsOf(const nlohmann::json& arguments) {
  EnvOptions options;
  options.mujoco.clip_actions = false;
  for (const auto& [name, value] : arguments.items()) {
    MujocoArgument& argument = options.mujoco.arguments[name];
    if (value.is_boolean()) {
      argument = value.get<bool>();
    } else if (value.is_array()) {
      argument = std::array<double, 2>{Number(value.at(0)), Number(value.at(1))};
    } else if (value.is_string()) {
      argument = value.get<std::string>();
    } else if (name == "main_body") {
      argument = std::to_string(value.get<int>());
    } else {
      argument = value.get<double>();
    }
  }
  return options;
}

std::vector<double> State(const Env& env) {
  std::vector<double> state(env.spec().state_size);
  env.SaveState(state.data());
  return state;
}

// Of all numbers so far, as the script has it.
class Digest {
 public:
  void Add(float x) {
    x += 0.0f;  // -0 counts as 0.
    uint32_t word = 0;
    std::memcpy(&word, &x, sizeof(word));
    value_ = (value_ ^ word) * 0x100000001B3u;
  }
  void AddObservation(const Env& env) {
    std::vector<float> obs(env.spec().obs_size);
    env.Observe(obs.data());
    for (const float x : obs) Add(x);
  }
  std::string text() const { return absl::StrFormat("%016x", value_); }

 private:
  uint64_t value_ = 0xCBF29CE484222325u;
};

double Near(double want) { return std::max(1e-6, 1e-6 * std::abs(want)); }

std::vector<float> Metrics(const Env& env) {
  std::vector<float> metrics(env.spec().episode_metrics.size());
  env.EpisodeMetrics(metrics.data());
  return metrics;
}

// The metrics after the first `sums`, which are what else Gymnasium's `info` has, in the order of their names.
std::vector<size_t> InfoByName(const EnvSpec& spec, size_t sums) {
  std::vector<size_t> info(spec.episode_metrics.size() - sums);
  std::iota(info.begin(), info.end(), sums);
  std::sort(info.begin(), info.end(),
            [&](size_t a, size_t b) { return spec.episode_metrics[a] < spec.episode_metrics[b]; });
  return info;
}

// Compares these of the last step.
void ExpectInfo(const Env& env, size_t sums, const nlohmann::json& info) {
  const std::vector<std::string>& names = env.spec().episode_metrics;
  const std::vector<float> metrics = Metrics(env);
  ASSERT_EQ(names.size() - sums, info.size());
  for (size_t i = sums; i < names.size(); ++i) {
    ASSERT_TRUE(info.contains(names[i])) << names[i];
    ASSERT_EQ(metrics[i], static_cast<float>(info[names[i]].get<double>())) << names[i];
  }
}

// Compares what `info` has at a start, which lacks velocities. A state that was loaded has no tendons yet.
void ExpectStartInfo(const Env& env, bool loaded, const nlohmann::json& info) {
  const std::vector<std::string>& names = env.spec().episode_metrics;
  const std::vector<float> metrics = Metrics(env);
  for (const auto& [name, value] : info.items()) {
    if (loaded && name.rfind("tendon_", 0) == 0) continue;
    const auto found = std::find(names.begin(), names.end(), name);
    ASSERT_NE(found, names.end()) << name;
    ASSERT_EQ(metrics[found - names.begin()], static_cast<float>(value.get<double>())) << name;
  }
}

// Puts `env` at the start of a trajectory: by its own reset where that has no noise.
void Begin(const nlohmann::json& golden, Env& env) {
  std::vector<double> start = golden["start"];
  ASSERT_LT(start.size(), env.spec().state_size);
  start.resize(env.spec().state_size);  // No sums yet.
  if (golden.value("kind", "") != "rest") return env.LoadState(start.data());
  RandomStream random(1, RandomPurpose::kEnvReset, 0, 0);
  env.Reset(random);
  ASSERT_EQ(State(env), start);
}

// Gymnasium's trajectory, played on after the task has terminated. States and observations are the same to the bit.
void ExpectGolden(Env& env, const nlohmann::json& golden) {
  SCOPED_TRACE(golden["kind"].get<std::string>());
  const EnvSpec& spec = env.spec();
  ASSERT_NO_FATAL_FAILURE(Begin(golden, env));
  ASSERT_NO_FATAL_FAILURE(ExpectStartInfo(env, golden["kind"] != "rest", golden["start_info"]));
  GoldenActions actions(golden["seed"], golden["action_bound"]);
  const std::vector<double> rewards = golden["rewards"];
  const std::vector<int> changes = golden["terminated_changes"];
  const std::vector<std::string> digests = golden["obs_digests"], info_digests = golden["info_digests"];
  const int steps = golden["steps"], reward_every = golden["reward_every"];
  const int digest_every = golden["obs_digest_every"], terms_every = golden["terms_every"];
  const size_t sums = golden["sums"].size(), first_sum = golden["start"].size();
  ASSERT_EQ(first_sum + sums, spec.state_size);
  const std::vector<size_t> info = InfoByName(spec, sums);
  Digest digest, info_digest;
  digest.AddObservation(env);
  ASSERT_EQ(digest.text(), digests[0]) << "the observation of the start";
  size_t change = 0;
  std::vector<double> last = State(env);
  double reward_sum = 0, magnitudes = 0;
  for (int t = 0; t < steps; ++t) {
    SCOPED_TRACE(t);
    float reward = 0;
    const bool terminated = env.Step(actions.Next(spec.action_size).data(), &reward);
    reward_sum += reward;
    magnitudes += std::abs(reward);
    if (change < changes.size() && changes[change] == t) ++change;
    ASSERT_EQ(terminated, change % 2 == 1);
    if ((t + 1) % reward_every == 0) {
      const double want = rewards[t / reward_every];
      ASSERT_NEAR(reward, want, Near(want));
    }
    std::vector<double> state = State(env);
    for (size_t i = 0; i < sums && t % terms_every == 0; ++i) {
      const double want = golden["terms"][spec.episode_metrics[i]][t / terms_every];
      ASSERT_NEAR(state[first_sum + i] - last[first_sum + i], want, Near(want)) << spec.episode_metrics[i];
    }
    last = std::move(state);
    digest.AddObservation(env);
    const std::vector<float> metrics = Metrics(env);
    for (const size_t i : info) info_digest.Add(metrics[i]);
    const auto want = golden["obs"].find(std::to_string(t));
    if (want != golden["obs"].end()) {
      std::vector<float> obs(spec.obs_size);
      env.Observe(obs.data());
      ASSERT_EQ(obs, want->get<std::vector<float>>());
      ASSERT_NO_FATAL_FAILURE(ExpectInfo(env, sums, golden["info"][std::to_string(t)]));
    }
    if ((t + 1) % digest_every == 0) {
      ASSERT_EQ(digest.text(), digests[(t + 1) / digest_every]) << "an observation of the last " << digest_every;
      ASSERT_EQ(info_digest.text(), info_digests[t / digest_every]) << "info of the last " << digest_every;
    }
  }
  EXPECT_NEAR(reward_sum, golden["reward_sum"].get<double>(), Near(magnitudes));
  const std::vector<double> final = golden["final"];
  for (size_t i = 0; i < final.size(); ++i) ASSERT_EQ(last[1 + i], final[i]) << "state " << i;
  const std::vector<float> means = Metrics(env);
  for (size_t i = 0; i < sums; ++i) {
    const double sum = golden["sums"][spec.episode_metrics[i]];
    const double want = spec.episode_metrics[i] == "x_velocity" ? sum / steps : sum;
    EXPECT_NEAR(means[i], want, Near(want)) << spec.episode_metrics[i];
  }
}

// A task, and how many ends its health has: each with a step to it and one to either side.
struct Task {
  std::string id;
  size_t ends;
};

class MujocoGolden : public testing::TestWithParam<Task> {
 protected:
  void SetUp() override {
    if (MujocoLibraryVersion() == "2.2.2") GTEST_SKIP() << "Debian's 2.2.2 is too old for Gymnasium";
    const char* const other = std::getenv("SKEIN_GOLDEN");
    const std::filesystem::path path = std::filesystem::path(other == nullptr ? "tests/env/golden" : other) /
                                       ("mujoco-" + MujocoLibraryVersion()) / (FileName(GetParam().id) + ".json");
    std::ifstream file(path);
    ASSERT_TRUE(file.good()) << path << ": scripts/make_env_golden.py makes it; run the test in the repository root";
    golden_ = nlohmann::json::parse(file);
  }

  nlohmann::json golden_;
};

TEST_P(MujocoGolden, StepsLikeGymnasiumToTheBit) {
  std::map<std::string, int> kinds;
  for (const auto& trajectory : golden_["trajectories"]) {
    SCOPED_TRACE(trajectory["arguments"].dump());
    ++kinds[trajectory["kind"].get<std::string>()];
    const auto env = MakeEnv(GetParam().id, OptionsOf(trajectory["arguments"]));
    ASSERT_TRUE(env.ok()) << env.status();
    ExpectGolden(**env, trajectory);
    if (HasFatalFailure()) return;
  }
  for (const char* const kind : {"upright", "thrown", "beyond the bounds", "fallen", "other arguments"}) {
    EXPECT_EQ(kinds[kind], 1) << kind;
  }
  EXPECT_GE(kinds["uncommon arguments"], 2);
}

// One step to the end of what is healthy, to the bit, and to the numbers beside it.
TEST_P(MujocoGolden, IsHealthyUpToTheSameNumber) {
  const std::unique_ptr<Env> env = MakeEnv(GetParam().id).value();
  const std::vector<float> rest(env->spec().action_size);
  std::map<std::string, size_t> sides;
  for (const auto& edge : golden_["edges"]) {
    SCOPED_TRACE(absl::StrFormat("%s %g", edge["side"].get<std::string>(), edge["edge"].get<double>()));
    ++sides[edge["side"].get<std::string>()];
    ASSERT_NO_FATAL_FAILURE(Begin(edge, *env));
    float reward = 0;
    EXPECT_EQ(env->Step(rest.data(), &reward), edge["terminated"].get<bool>());
    EXPECT_NEAR(reward, edge["reward"].get<double>(), Near(edge["reward"]));
    Digest digest;
    digest.AddObservation(*env);
    EXPECT_EQ(digest.text(), edge["obs_digest"]);
  }
  for (const char* const side : {"below", "at", "above"}) EXPECT_EQ(sides[side], GetParam().ends) << side;
}

// QuadrupedStand-v0 is not Gymnasium's.
const Task kTasks[] = {{"Ant-v5", 2},
                       {"HalfCheetah-v5", 0},
                       {"Hopper-v5", 5},
                       {"Humanoid-v5", 2},
                       {"HumanoidStandup-v5", 0},
                       {"InvertedDoublePendulum-v5", 1},
                       {"InvertedPendulum-v5", 2},
                       {"Pusher-v5", 0},
                       {"Reacher-v5", 0},
                       {"Swimmer-v5", 0},
                       {"Walker2d-v5", 4}};

INSTANTIATE_TEST_SUITE_P(Tasks, MujocoGolden, testing::ValuesIn(kTasks),
                         [](const auto& info) { return info.param.id.substr(0, info.param.id.find('-')); });

TEST(MujocoGoldenTasks, AreAllOfGymnasiums) {
  std::vector<std::string> ids = MujocoTaskIds(), tested = {"QuadrupedStand-v0"};
  for (const Task& task : kTasks) tested.push_back(task.id);
  EXPECT_THAT(ids, testing::UnorderedElementsAreArray(tested));
}

}  // namespace
}  // namespace skein
