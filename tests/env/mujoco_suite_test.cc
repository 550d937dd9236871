// SPDX-License-Identifier: Apache-2.0
// Every MuJoCo task against trajectories of the real Gymnasium (scripts/make_env_golden.py, which says how to make
// others than those of tests/env/golden), and what all have in common.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <vector>

#include "absl/strings/ascii.h"
#include "env/mujoco/library.h"
#include "env/mujoco/mujoco_env.h"
#include "env/registry.h"
#include "env/vector_env.h"
#include "tests/env/golden.h"
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

// The actions of make_env_golden.py.
class Actions {
 public:
  Actions(uint64_t seed, float bound) : state_(seed), bound_(bound) {}
  std::vector<float> Next(int size) {
    std::vector<float> action(size);
    for (float& a : action) {
      state_ = state_ * 6364136223846793005u + 1442695040888963407u;
      a = (static_cast<float>(state_ >> 48) / 32768 - 1) * bound_;
    }
    return action;
  }

 private:
  uint64_t state_;
  const float bound_;
};

class MujocoSuite : public testing::TestWithParam<std::string> {
 protected:
  std::unique_ptr<Env> Make() const { return MakeEnv(GetParam()).value(); }
  std::string GoldenName() const { return "mujoco-" + MujocoLibraryVersion() + "/" + FileName(GetParam()) + ".json"; }
};

std::vector<double> State(const Env& env) {
  std::vector<double> state(env.spec().state_size);
  env.SaveState(state.data());
  return state;
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
      argument = value.get<std::array<double, 2>>();
    } else if (name == "main_body") {
      argument = std::to_string(value.get<int>());
    } else {
      argument = value.get<double>();
    }
  }
  return options;
}

// Gymnasium's trajectory, played on after the task has terminated. States are the same to the bit.
void ExpectGolden(Env& env, const nlohmann::json& golden) {
  const std::string kind = golden["kind"];
  SCOPED_TRACE(kind);
  const EnvSpec& spec = env.spec();
  std::vector<double> start = golden["start"];
  ASSERT_EQ(start.size() + spec.episode_metrics.size(), spec.state_size);
  start.resize(spec.state_size);  // No metrics yet.
  env.LoadState(start.data());
  Actions actions(golden["seed"], golden["action_bound"]);
  const std::vector<double> rewards = golden["rewards"];
  const std::vector<size_t> changes = golden["terminated_changes"];
  size_t change = 0;
  for (size_t t = 0; t < rewards.size(); ++t) {
    float reward = 0;
    const bool terminated = env.Step(actions.Next(spec.action_size).data(), &reward);
    if (change < changes.size() && changes[change] == t) ++change;
    ASSERT_EQ(terminated, change % 2 == 1) << "step " << t;
    ASSERT_NEAR(reward, rewards[t], std::max(1e-6, 1e-6 * std::abs(rewards[t]))) << "step " << t;
    const auto want = golden["obs"].find(std::to_string(t));
    if (want == golden["obs"].end()) continue;
    std::vector<float> obs(spec.obs_size);
    env.Observe(obs.data());
    ASSERT_EQ(obs, want->get<std::vector<float>>()) << "step " << t;
  }
  const std::vector<double> final = golden["final"], state = State(env);
  for (size_t i = 0; i < final.size(); ++i) ASSERT_EQ(state[1 + i], final[i]) << "state " << i;
  std::vector<float> metrics(spec.episode_metrics.size());
  env.EpisodeMetrics(metrics.data());
  for (size_t i = 0; i < metrics.size(); ++i) {
    const std::string& name = spec.episode_metrics[i];
    if (name == "x_velocity") continue;
    const double sum = golden["terms"][name];
    EXPECT_NEAR(metrics[i], sum, std::max(1e-6, 1e-6 * std::abs(sum))) << name;
  }
}

TEST_P(MujocoSuite, StepsLikeGymnasiumToTheBit) {
  const char* const other = std::getenv("SKEIN_GOLDEN");
  const std::filesystem::path path =
      std::filesystem::path(other == nullptr ? "tests/env/golden" : other) / GoldenName();
  if (!std::filesystem::exists(path)) GTEST_SKIP() << "no trajectories of MuJoCo " << MujocoLibraryVersion();
  std::ifstream file(path);
  const nlohmann::json golden = nlohmann::json::parse(file);
  ASSERT_EQ(golden["trajectories"].size(), 5u);
  for (const auto& trajectory : golden["trajectories"]) {
    const auto env = MakeEnv(GetParam(), OptionsOf(trajectory["arguments"]));
    ASSERT_TRUE(env.ok()) << env.status();
    ExpectGolden(**env, trajectory);
  }
}

// Taken over in the middle of an episode, by an instance with a past of its own, at each step.
TEST_P(MujocoSuite, ContinuesBitForBitInAnotherInstance) {
  const std::unique_ptr<Env> whole = Make(), resumed = Make();
  const EnvSpec& spec = whole->spec();
  RandomStream reset(1, RandomPurpose::kEnvReset, 0, 0), other_reset(1, RandomPurpose::kEnvReset, 0, 1);
  whole->Reset(reset);
  resumed->Reset(other_reset);
  Actions actions(1, spec.action_high[0]);
  float reward = 0;
  for (int t = 0; t < 30; ++t) resumed->Step(actions.Next(spec.action_size).data(), &reward);
  std::vector<float> obs(spec.obs_size), other_obs(spec.obs_size);
  for (int t = 0; t < 300; ++t) {
    resumed->LoadState(State(*whole).data());
    whole->Observe(obs.data());
    resumed->Observe(other_obs.data());
    ASSERT_EQ(obs, other_obs) << t;
    const std::vector<float> action = actions.Next(spec.action_size);
    float other_reward = 0;
    const bool terminated = whole->Step(action.data(), &reward);
    ASSERT_EQ(resumed->Step(action.data(), &other_reward), terminated) << t;
    ASSERT_EQ(reward, other_reward) << t;
    ASSERT_EQ(State(*whole), State(*resumed)) << t;
  }
}

TEST_P(MujocoSuite, StartsDifferAndAreHealthy) {
  const std::unique_ptr<Env> env = Make();
  std::vector<double> last;
  for (int episode = 0; episode < 50; ++episode) {
    RandomStream random(1, RandomPurpose::kEnvReset, 0, episode);
    env->Reset(random);
    ASSERT_NE(State(*env), last);
    last = State(*env);
    const std::vector<float> rest(env->spec().action_size);
    float reward = 0;
    ASSERT_FALSE(env->Step(rest.data(), &reward)) << episode;
    ASSERT_TRUE(std::isfinite(reward));
  }
}

TEST_P(MujocoSuite, RefusesAnArgumentThatItDoesNotHave) {
  // Of the eleven no task has both.
  for (const char* const name : {"reward_near_weight", "healthy_z_range"}) {
    EnvOptions options;
    options.mujoco.arguments[name] =
        std::string(name) == "healthy_z_range" ? MujocoArgument(std::array<double, 2>{0.1, 9}) : MujocoArgument(0.25);
    const absl::Status status = MakeEnv(GetParam(), options).status();
    if (status.ok()) continue;
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(status.message()),
                testing::AllOf(testing::HasSubstr(std::string("env.mujoco.") + name), testing::HasSubstr(GetParam()),
                               testing::HasSubstr("frame_skip")));
    return;
  }
  FAIL() << "it accepts both";
}

INSTANTIATE_TEST_SUITE_P(Tasks, MujocoSuite, testing::ValuesIn(MujocoTaskIds()),
                         [](const auto& info) { return info.param.substr(0, info.param.find('-')); });

EnvSpec Spec(const std::string& id, std::map<std::string, MujocoArgument> arguments) {
  EnvOptions options;
  options.mujoco.arguments = std::move(arguments);
  const auto spec = FindEnvSpec(id, options);
  EXPECT_TRUE(spec.ok()) << spec.status();
  return spec.ok() ? *spec : EnvSpec{};
}

TEST(MujocoArguments, ChangeTheObservation) {
  EXPECT_EQ(Spec("Ant-v5", {}).obs_size, 105);
  EXPECT_EQ(Spec("Ant-v5", {{"include_cfrc_ext_in_observation", false}}).obs_size, 27);
  EXPECT_EQ(Spec("Ant-v5", {{"exclude_current_positions_from_observation", false}}).obs_size, 107);
  EXPECT_EQ(Spec("Humanoid-v5", {}).obs_size, 348);
  EXPECT_EQ(Spec("HumanoidStandup-v5", {}).obs_size, 348);
  EXPECT_EQ(Spec("Humanoid-v5", {{"include_cinert_in_observation", false}}).obs_size, 348 - 130);
  EXPECT_EQ(Spec("Humanoid-v5", {{"include_cvel_in_observation", false}}).obs_size, 348 - 78);
  EXPECT_EQ(Spec("Humanoid-v5", {{"include_qfrc_actuator_in_observation", false}}).obs_size, 348 - 17);
  EXPECT_EQ(Spec("HalfCheetah-v5", {{"exclude_current_positions_from_observation", false}}).obs_size, 18);
  EXPECT_EQ(Spec("Swimmer-v5", {{"exclude_current_positions_from_observation", false}}).obs_size, 10);
}

TEST(MujocoArguments, ChangeRewardTerminationAndStepping) {
  const auto step = [](const std::string& id, std::map<std::string, MujocoArgument> arguments,
                       std::vector<float> action, float* reward) {
    EnvOptions options;
    options.mujoco.arguments = std::move(arguments);
    const std::unique_ptr<Env> env = MakeEnv(id, options).value();
    RandomStream random(1, RandomPurpose::kEnvReset, 0, 0);
    env->Reset(random);
    return env->Step(action.data(), reward);
  };
  float plain = 0, changed = 0;
  const std::vector<float> action = {1, -1, 0.5f, 0.25f, -0.5f, 1};
  EXPECT_FALSE(step("Walker2d-v5", {}, action, &plain));
  EXPECT_FALSE(step("Walker2d-v5", {{"healthy_reward", 3.0}}, action, &changed));
  EXPECT_NEAR(changed - plain, 2, 1e-6);
  step("Walker2d-v5", {{"ctrl_cost_weight", 0.0}}, action, &changed);
  EXPECT_NEAR(changed - plain, 1e-3 * 3.5625, 1e-6);  // Squares: 1, 1, 1/4, 1/16, 1/4, 1.
  EXPECT_TRUE(step("Walker2d-v5", {{"healthy_z_range", std::array<double, 2>{1.5, 2}}}, action, &changed));
  EXPECT_FALSE(step("Walker2d-v5",
                    {{"healthy_z_range", std::array<double, 2>{1.5, 2}}, {"terminate_when_unhealthy", false}}, action,
                    &changed));
  EXPECT_NEAR(changed - plain, -1, 1e-6);
  EnvOptions slow;
  slow.mujoco.arguments["frame_skip"] = 10.0;
  const std::unique_ptr<Env> env = MakeEnv("Hopper-v5", slow).value();
  RandomStream random(1, RandomPurpose::kEnvReset, 0, 0);
  env->Reset(random);
  env->Step(action.data(), &plain);
  EXPECT_DOUBLE_EQ(State(*env)[0], 0.02);  // Seconds: ten times 0.002.
}

TEST(MujocoArguments, AreRefusedWhereTheyCannotBe) {
  const auto refused = [](const std::string& id, const std::string& name, MujocoArgument value) {
    EnvOptions options;
    options.mujoco.arguments[name] = std::move(value);
    const absl::Status status = FindEnvSpec(id, options).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << name;
    EXPECT_THAT(std::string(status.message()), testing::HasSubstr("env.mujoco." + name));
    return std::string(status.message());
  };
  refused("Walker2d-v5", "healthy_z_range", std::array<double, 2>{2, 1});
  refused("Walker2d-v5", "reset_noise_scale", -1.0);
  refused("Walker2d-v5", "terminate_when_unhealthy", 1.0);
  EXPECT_THAT(refused("CartPole-v1", "healthy_reward", 1.0), testing::HasSubstr("not a MuJoCo environment"));
  EnvOptions options;
  options.mujoco.arguments["main_body"] = std::string("tail");
  EXPECT_THAT(std::string(MakeEnv("Ant-v5", options).status().message()), testing::HasSubstr("no body 'tail'"));
}

// The reward of an action beyond the bounds: by default as of the clipped action, else as Gymnasium has it.
TEST(MujocoEnvs, ScoreActionsBeyondTheirBounds) {
  const auto reward = [](bool clip, float action) {
    VectorEnv::Options options{.env_id = "Swimmer-v5"};
    options.env.mujoco.clip_actions = clip;
    const std::unique_ptr<VectorEnv> env = VectorEnv::Make(options).value();
    env->ResetAll(0);
    const std::vector<float> actions = {action, action};
    return env->Step(actions.data()).reward[0];
  };
  EXPECT_EQ(reward(true, 5), reward(true, 1));
  EXPECT_NEAR(reward(false, 1) - reward(false, 5), 1e-4 * 2 * (25 - 1), 1e-6);  // The motors clip the same.
}

class UserModel : public testing::Test {
 protected:
  UserModel() : folder_(std::filesystem::path(testing::TempDir()) / "user_model") {
    std::filesystem::create_directories(folder_ / "parts");
  }
  ~UserModel() override { std::filesystem::remove_all(folder_); }

  std::string Write(const std::string& name, const std::string& text) {
    std::ofstream(folder_ / name) << text;
    return (folder_ / name).string();
  }
  static absl::StatusOr<std::unique_ptr<Env>> Hopper(const std::string& path) {
    EnvOptions options;
    options.mujoco.arguments["xml_file"] = path;
    return MakeEnv("Hopper-v5", options);
  }
  static std::string Why(const std::string& path, absl::StatusCode code = absl::StatusCode::kDataLoss) {
    const absl::Status status = Hopper(path).status();
    EXPECT_EQ(status.code(), code) << status;
    EXPECT_THAT(std::string(status.message()), testing::Not(testing::HasSubstr("\n")));
    return std::string(status.message());
  }
  static std::string OwnModel() {
    std::ifstream file("env/mujoco/tasks/hopper.xml");
    return std::string(std::istreambuf_iterator<char>(file), {});
  }

  const std::filesystem::path folder_;
};

TEST_F(UserModel, TakesThePlaceOfTheTasksOwn) {
  std::string text = OwnModel();
  const size_t gravity = text.find("timestep=\"0.002\"");
  ASSERT_NE(gravity, std::string::npos);
  text.insert(gravity, "gravity=\"0 0 -1\" ");
  const size_t bounds = text.find("ctrlrange=\"-1 1\"");
  text.replace(bounds, 16, "ctrlrange=\"-2 2\"");
  const auto moon = Hopper(Write("moon.xml", text));
  ASSERT_TRUE(moon.ok()) << moon.status();
  EXPECT_EQ((*moon)->spec().action_high[0], 2);
  const std::unique_ptr<Env> earth = MakeEnv("Hopper-v5").value();
  RandomStream one(1, RandomPurpose::kEnvReset, 0, 0), same(1, RandomPurpose::kEnvReset, 0, 0);
  (*moon)->Reset(one);
  earth->Reset(same);
  EXPECT_EQ(State(**moon)[2], State(*earth)[2]);  // z
  const float rest[3] = {};
  float reward = 0;
  for (int t = 0; t < 20; ++t) {
    (*moon)->Step(rest, &reward);
    earth->Step(rest, &reward);
  }
  EXPECT_NE(State(**moon)[2], State(*earth)[2]);
}

TEST_F(UserModel, MayIncludeFilesOfItsFolder) {
  const std::string text = OwnModel();
  const size_t begin = text.find("<actuator>"), end = text.find("</mujoco>");
  Write("parts/motors.xml", "<mujoco>" + text.substr(begin, end - begin) + "</mujoco>");
  const std::string whole = text.substr(0, begin) + "<include file=\"parts/motors.xml\"/>" + text.substr(end);
  const auto env = Hopper(Write("whole.xml", whole));
  EXPECT_TRUE(env.ok()) << env.status();
}

TEST_F(UserModel, IsRefusedInOneLineIfItIsBrokenOrHostile) {
  EXPECT_THAT(Why((folder_ / "none.xml").string(), absl::StatusCode::kNotFound), testing::HasSubstr("none.xml"));
  EXPECT_THAT(Why(folder_.string()), testing::HasSubstr("not a file"));
  {
    ExpectMujocoWarnings(0);
    EXPECT_THAT(Why(Write("broken.xml", "<mujoco><worldbody></mujoco>")), testing::HasSubstr("broken.xml"));
  }
  EXPECT_THAT(Why(Write("empty.xml", "")), testing::HasSubstr("empty.xml"));
  EXPECT_THAT(
      Why(Write("other.xml", "<mujoco><worldbody><body><joint/><geom size=\"1\"/></body></worldbody></mujoco>")),
      testing::HasSubstr("its task needs 6"));
  for (const char* const outside : {"../secret.xml", "/etc/passwd", "parts/../../secret.xml"}) {
    EXPECT_THAT(Why(Write("out.xml", std::string("<mujoco><include file=\"") + outside + "\"/></mujoco>")),
                testing::HasSubstr("outside of its folder"))
        << outside;
  }
  std::filesystem::create_symlink("/etc/passwd", folder_ / "link.xml");
  EXPECT_THAT(Why(Write("out.xml", "<mujoco><include file=\"link.xml\"/></mujoco>")),
              testing::HasSubstr("outside of its folder"));
  EXPECT_THAT(Why(Write("self.xml", "<mujoco><include file=\"self.xml\"/></mujoco>")), testing::HasSubstr("includes"));
  EXPECT_THAT(Why(Write("entity.xml", "<!DOCTYPE a [<!ENTITY b SYSTEM \"/etc/passwd\">]><mujoco>&b;</mujoco>")),
              testing::HasSubstr("not supported"));
  EXPECT_THAT(Why(Write("mesh.xml", "<mujoco><asset><mesh file=\"/etc/passwd\"/></asset></mujoco>")),
              testing::HasSubstr("<mesh> is not supported"));
  std::string many = "<mujoco><worldbody>";
  for (int i = 0; i < 5000; ++i) many += "<body><geom size=\"1\"/></body>";
  EXPECT_THAT(Why(Write("many.xml", many + "</worldbody></mujoco>")), testing::HasSubstr("more than 1000 bodies"));
  EXPECT_THAT(Why(Write("large.xml", std::string(3 << 20, ' '))), testing::HasSubstr("bytes"));
}

// What a reader that looks for strings, or MuJoCo by itself, falls for.
TEST_F(UserModel, IsRefusedHoweverItIsWritten) {
  const auto refused = [&](const std::string& content, const std::string& why) {
    EXPECT_THAT(Why(Write("odd.xml", "<mujoco>" + content + "</mujoco>")), testing::HasSubstr(why))
        << content.substr(0, 80);
  };
  refused("< include file=\"/etc/passwd\"/>", "outside of its folder");
  refused("<include\nfile='/etc/passwd'></include>", "outside of its folder");
  refused("<include file=\"a.xml\" prefix=\"b\"/>", "the attribute file and no other");
  refused("<include" + std::string(900'000, ' ') + "/>", "the attribute file and no other");
  refused("<asset><texture name=\">\" file=\"/etc/passwd\"/></asset>", "reads a file");
  refused("<asset><texture name=\"<!--\" type=\"cube\" fileright=\"/etc/passwd\"/></asset>", "");
  refused("<asset><texture type=\"cube\" fileright=\"/etc/passwd\"/></asset>", "reads a file");
  refused("<asset>< mesh file=\"/etc/passwd\"/></asset>", "<mesh> is not supported");
  refused("<asset><texture builtin=\"flat\" width=\"1000000\" height=\"1000000\"/></asset>", "width=\"1000000\"");
  refused("<asset><texture builtin=\"flat\" width=\"&#57;99999\" height=\"9\"/></asset>", "character references");
  refused("<size memory=\"1P\"/>", "memory");
  refused("<size njmax=\"2000000000\"/>", "njmax");
  refused("<size nuser_body=\"2000000000\"/>", "nuser_body");
  refused("<custom><numeric name=\"a\" size=\"2000000000\"/></custom>", "<numeric>");
  refused("<option iterations=\"2000000000\"/>", "iterations");
  refused("<body name=\"a\" pos=>", "is no XML");
  std::string deep, geoms;
  for (int i = 0; i < 15'000; ++i) deep += "<default>";
  refused(deep, "odd.xml");
  for (int i = 0; i < 30'000; ++i) geoms += "<geom size=\"1\"/>";
  refused("<worldbody>" + geoms + "</worldbody>", "more than 20000 tags");
}

TEST_F(UserModel, IsRefusedIfItsNumbersAreNotFinite) {
  std::string text = OwnModel();
  const size_t at = text.find("timestep=\"0.002\"");
  for (const char* const step : {"timestep=\"0\"", "timestep=\"-1\"", "timestep=\"nan\""}) {
    std::string other = text;
    EXPECT_NE(Why(Write("step.xml", other.replace(at, 16, step))), "") << step;
  }
  for (const char* const gravity : {"0 0 nan", "inf 0 0", "0 1e999 0"}) {
    std::string other = text;
    other.insert(at, std::string("gravity=\"") + gravity + "\" ");
    EXPECT_THAT(Why(Write("gravity.xml", other)), testing::HasSubstr("<option> is not finite"));
  }
  const int64_t warned = MujocoWarningCount();
  std::string heavy = text;
  heavy.insert(at, "gravity=\"0 0 1e200\" ");
  EXPECT_THAT(Why(Write("gravity.xml", heavy)), testing::HasSubstr("accelerations in its initial pose"));
  ExpectMujocoWarnings(MujocoWarningCount() - warned);
}

}  // namespace
}  // namespace skein
