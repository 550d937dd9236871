// SPDX-License-Identifier: Apache-2.0
// Gymnasium's own model files (tests/env/gymnasium, unchanged) as env.mujoco.xml_file of their tasks: they move as the
// tasks' own models do, to the bit.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <memory>
#include <string>
#include <vector>

#include "base/number/philox.h"
#include "env/registry.h"
#include "tests/env/mujoco_warnings.h"

namespace skein {
namespace {

struct Model {
  std::string env_id, file;
};

class GymnasiumModels : public testing::TestWithParam<Model> {};

TEST_P(GymnasiumModels, TakeThePlaceOfTheTasksOwn) {
  EnvOptions options;
  options.mujoco.arguments["xml_file"] = "tests/env/gymnasium/" + GetParam().file;
  const auto made = MakeEnv(GetParam().env_id, options);
  ASSERT_TRUE(made.ok()) << made.status();
  const std::unique_ptr<Env>& theirs = *made;
  const std::unique_ptr<Env> ours = MakeEnv(GetParam().env_id).value();
  const EnvSpec& spec = ours->spec();
  EXPECT_EQ(theirs->spec().action_high, spec.action_high);
  EXPECT_EQ(theirs->spec().obs_size, spec.obs_size);
  RandomStream one(1, RandomPurpose::kEnvReset, 0, 0), same(1, RandomPurpose::kEnvReset, 0, 0);
  theirs->Reset(one);
  ours->Reset(same);
  RandomStream actions(1, RandomPurpose::kAction, 0, 0);
  std::vector<float> action(spec.action_size), their_obs(spec.obs_size), our_obs(spec.obs_size);
  for (int t = 0; t < 1000; ++t) {
    for (int i = 0; i < spec.action_size; ++i) {
      action[i] = static_cast<float>(actions.Uniform(spec.action_low[i], spec.action_high[i]));
    }
    float their_reward = 0, our_reward = 0;
    const bool terminated = ours->Step(action.data(), &our_reward);
    ASSERT_EQ(theirs->Step(action.data(), &their_reward), terminated) << t;
    theirs->Observe(their_obs.data());
    ours->Observe(our_obs.data());
    ASSERT_EQ(their_obs, our_obs) << t;
    ASSERT_EQ(their_reward, our_reward) << t;
    if (terminated) {
      theirs->Reset(one);
      ours->Reset(same);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(, GymnasiumModels,
                         testing::Values(Model{"Ant-v5", "ant.xml"}, Model{"HalfCheetah-v5", "half_cheetah.xml"},
                                         Model{"Hopper-v5", "hopper.xml"}, Model{"Humanoid-v5", "humanoid.xml"},
                                         Model{"HumanoidStandup-v5", "humanoidstandup.xml"},
                                         Model{"InvertedDoublePendulum-v5", "inverted_double_pendulum.xml"},
                                         Model{"InvertedPendulum-v5", "inverted_pendulum.xml"},
                                         Model{"Pusher-v5", "pusher_v5.xml"}, Model{"Reacher-v5", "reacher.xml"},
                                         Model{"Swimmer-v5", "swimmer.xml"}, Model{"Walker2d-v5", "walker2d_v5.xml"}),
                         [](const auto& one) { return one.param.env_id.substr(0, one.param.env_id.find('-')); });

TEST(NumbersOfTheUserInAModel, AreTakenUpToAHundred) {
  std::string text;
  {
    std::ifstream file("tests/env/gymnasium/half_cheetah.xml");
    text.assign(std::istreambuf_iterator<char>(file), {});
  }
  const size_t at = text.find("nuser_geom=\"1\"");
  ASSERT_NE(at, std::string::npos);
  text.replace(at, 14, "nuser_geom=\"101\"");
  const std::string path = testing::TempDir() + "/users_numbers.xml";
  std::ofstream(path) << text;
  EnvOptions options;
  options.mujoco.arguments["xml_file"] = path;
  const absl::Status status = MakeEnv("HalfCheetah-v5", options).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(std::string(status.message()), testing::HasSubstr("nuser_geom=\"101\" of <size>: want at most 100"));
}

}  // namespace
}  // namespace skein
