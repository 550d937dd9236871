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

#include "absl/strings/match.h"
#include "base/number/philox.h"
#include "env/mujoco/library.h"
#include "env/mujoco/model.h"
#include "env/mujoco/mujoco_env.h"
#include "env/registry.h"
#include "tests/env/mujoco_warnings.h"

namespace skein {
namespace {

struct Model {
  std::string env_id, file;
};

EnvOptions WithModel(const std::string& path) {
  EnvOptions options;
  options.mujoco.arguments["xml_file"] = path;
  return options;
}

std::string Text(const std::string& path) {
  std::ifstream file(path);
  EXPECT_TRUE(file.good()) << path;
  return std::string(std::istreambuf_iterator<char>(file), {});
}

// -1: contacts are searched for.
int ListedPairs(const std::string& env_id, const EnvOptions& options) {
  const auto task = FindMujocoTask(env_id, options.mujoco);
  EXPECT_TRUE(task.ok()) << task.status();
  if (!task.ok()) return -2;
  const SharedModel stepped = *ModelOf(**task, ModelForm::kStepped);
  return stepped == *ModelOf(**task, ModelForm::kPublished) ? -1 : static_cast<int>(stepped->npair);
}

// Over 1,000 steps with resets.
void ExpectToMoveAsTheTasksOwn(const std::string& env_id, const EnvOptions& options) {
  const auto made = MakeEnv(env_id, options);
  ASSERT_TRUE(made.ok()) << made.status();
  const std::unique_ptr<Env>& theirs = *made;
  const std::unique_ptr<Env> ours = MakeEnv(env_id).value();
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

class GymnasiumModels : public testing::TestWithParam<Model> {
 protected:
  // Newer releases warn of the half cheetah's settotalmass.
  void TearDown() override {
    if (absl::StrContains(LastMujocoWarning(), "settotalmass")) ExpectMujocoWarnings(MujocoWarningCount() - warned_);
  }

 private:
  const int64_t warned_ = MujocoWarningCount();
};

TEST_P(GymnasiumModels, TakeThePlaceOfTheTasksOwn) {
  ExpectToMoveAsTheTasksOwn(GetParam().env_id, WithModel("tests/env/gymnasium/" + GetParam().file));
}

TEST_P(GymnasiumModels, HaveTheirContactsListedAsTheTasksOwn) {
  EXPECT_EQ(ListedPairs(GetParam().env_id, WithModel("tests/env/gymnasium/" + GetParam().file)),
            ListedPairs(GetParam().env_id, {}));
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

// Where a list of contacts in the text would not be what MuJoCo reads, they are searched for.
TEST(TextsThatMujocoReadsOtherwise, MoveAsTheTasksOwnToo) {
  const auto moves = [](const std::string& file, const std::string& before, const std::string& more) {
    std::string text = Text("tests/env/gymnasium/" + file);
    const size_t at = before.empty() ? text.size() : text.find(before);
    ASSERT_NE(at, std::string::npos);
    const std::string path = testing::TempDir() + "/read_otherwise.xml";
    std::ofstream(path) << text.insert(at, more);
    const std::string env_id = file == "ant.xml" ? "Ant-v5" : "Hopper-v5";
    ExpectToMoveAsTheTasksOwn(env_id, WithModel(path));
    EXPECT_EQ(ListedPairs(env_id, WithModel(path)), -1);
  };
  for (const char* const file : {"ant.xml", "hopper.xml"}) {
    SCOPED_TRACE(file);
    moves(file, "", "<mujoco></mujoco>");
    moves(file, "", "<mujoco><worldbody/></mujoco>");
    moves(file, "</default>", "<\n pair solref='0.5 1' margin='0.3' gap='0.01'/>");
  }
}

TEST(NumbersOfTheUserInAModel, AreTakenUpToAHundred) {
  std::string text = Text("tests/env/gymnasium/half_cheetah.xml");
  const size_t at = text.find("nuser_geom=\"1\"");
  ASSERT_NE(at, std::string::npos);
  text.replace(at, 14, "nuser_geom=\"101\"");
  const std::string path = testing::TempDir() + "/users_numbers.xml";
  std::ofstream(path) << text;
  const absl::Status status = MakeEnv("HalfCheetah-v5", WithModel(path)).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(std::string(status.message()), testing::HasSubstr("nuser_geom=\"101\" of <size>: want at most 100"));
}

}  // namespace
}  // namespace skein
