// SPDX-License-Identifier: Apache-2.0
// An error of MuJoCo in mid-episode, which it cannot return from, costs that episode and nothing else.
#include <gtest/gtest.h>
#include <mujoco/mujoco.h>

#include <memory>
#include <vector>

#include "env/vector_env.h"
#include "tests/env/mujoco_warnings.h"

namespace skein {
namespace {

constexpr double kFailsAt = 0.05;  // s

std::unique_ptr<VectorEnv> TwoHoppers() {
  VectorEnv::Options options;
  options.env_id = "Hopper-v5";
  options.size = 2;
  options.max_episode_steps = 40;
  return VectorEnv::Make(options).value();
}

std::vector<float> Observed(const VectorEnv& env) {
  std::vector<float> obs(2 * env.spec().obs_size);
  env.Observe(obs.data());
  return obs;
}

// The simulation that comes first to kFailsAt fails, once.
class MujocoError : public testing::Test {
 protected:
  MujocoError() {
    failures_left = 1;
    mjcb_passive = [](const mjModel*, mjData* data) {
      if (data->time >= kFailsAt && failures_left-- > 0) mju_error("out of memory, says a test");
    };
  }
  ~MujocoError() override { mjcb_passive = nullptr; }

  static inline int failures_left = 0;
};

TEST_F(MujocoError, CostsItsEpisodeAndNothingElse) {
  const auto struck = TwoHoppers();
  struck->ResetAll(0);
  const std::vector<float> action(2 * struck->spec().action_size, 0.1f);
  std::vector<std::vector<float>> second;  // Observations of the other environment.
  int failed_in = -1;
  for (int t = 0; t < 30; ++t) {
    const VectorEnv::StepResult result = struck->Step(action.data());
    ASSERT_TRUE(struck->failure().ok()) << struck->failure();
    ASSERT_FALSE(result.diverged[1]);
    if (result.diverged[0]) {
      ASSERT_EQ(failed_in, -1);
      failed_in = t;
      EXPECT_TRUE(result.truncated[0]);
      EXPECT_FALSE(result.terminated[0]);
      EXPECT_EQ(result.reward[0], 0);
      EXPECT_EQ(struck->episode(0), 1u);
    }
    const std::vector<float> obs = Observed(*struck);
    second.emplace_back(obs.begin() + obs.size() / 2, obs.end());
  }
  EXPECT_EQ(failed_in, 6);  // An env step is 8 ms.

  mjcb_passive = nullptr;
  const auto whole = TwoHoppers();
  whole->ResetAll(0);
  for (size_t t = 0; t < second.size(); ++t) {
    whole->Step(action.data());
    const std::vector<float> obs = Observed(*whole);
    ASSERT_EQ(second[t], std::vector<float>(obs.begin() + obs.size() / 2, obs.end())) << t;
  }
  // The episode after the error is as it is where none came before.
  whole->ResetAll(0, 1);
  for (int t = failed_in + 1; t < 30; ++t) whole->Step(action.data());
  const std::vector<float> fresh = Observed(*whole), after = Observed(*struck);
  EXPECT_EQ(std::vector<float>(after.begin(), after.begin() + after.size() / 2),
            std::vector<float>(fresh.begin(), fresh.begin() + fresh.size() / 2));
}

}  // namespace
}  // namespace skein
