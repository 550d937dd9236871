// SPDX-License-Identifier: Apache-2.0
#include "bench/scaling_stages.h"

#include "gmock/gmock.h"

namespace skein {
namespace {

using testing::DoubleNear;
using testing::ElementsAre;
using testing::HasSubstr;

// As the learner writes them: its own stages since it started, the actors' of the iteration.
std::vector<std::string> SampleLines() {
  return {R"({"iteration":1,"env_steps":100,"seconds":2.0,
      "learner_stage_seconds":{"barrier":1.5,"update":0.4,"publish":0.05,"receive":0.01,"admit":0.01},
      "actor_stage_seconds":{"env_step":9,"inference":9,"build":9,"wait":9}})",
          R"({"iteration":2,"env_steps":200,"seconds":3.0,
      "learner_stage_seconds":{"barrier":2.2,"update":0.6,"publish":0.10,"receive":0.02,"admit":0.02},
      "actor_stage_seconds":{"env_step":1.0,"inference":0.2,"build":0.1,"wait":0.05}})",
          R"({"iteration":3,"env_steps":300,"seconds":5.0,
      "learner_stage_seconds":{"barrier":3.85,"update":0.9,"publish":0.16,"receive":0.03,"admit":0.05},
      "actor_stage_seconds":{"env_step":2.0,"inference":0.4,"build":0.2,"wait":0.05}})"};
}

TEST(ScalingStages, TakesWhatComesAfterTheWarmUp) {
  const auto times = ReadIterationTimes(SampleLines());
  ASSERT_TRUE(times.ok()) << times.status();
  EXPECT_THAT(times->seconds, ElementsAre(1.0, 2.0));
  EXPECT_EQ(times->env_steps, 200u);                                  // 300 - 100.
  EXPECT_THAT(times->learner.at("update"), DoubleNear(0.5, 1e-9));    // 0.9 - 0.4.
  EXPECT_THAT(times->runners.at("env_step"), DoubleNear(3.0, 1e-9));  // 1 + 2; the first line's 9 do not count.
  EXPECT_THAT(StepSeconds(*times), DoubleNear(0.015, 1e-9));          // 3 s / 200.
}

TEST(ScalingStages, SharesOfRunnersAndOfTheLearnerSumToOne) {
  const auto times = ReadIterationTimes(SampleLines());
  ASSERT_TRUE(times.ok());
  // Two runners in 3 s have 6 s. A step takes 0.015 s, where nobody competes 0.01 s: two thirds are physics.
  const StageShares shares = ComputeShares(*times, 2, 0.01);
  EXPECT_THAT(shares.physics, DoubleNear(2.0 / 6, 1e-9));
  EXPECT_THAT(shares.contention, DoubleNear(1.0 / 6, 1e-9));
  EXPECT_THAT(shares.inference, DoubleNear(0.6 / 6, 1e-9));
  EXPECT_THAT(shares.build, DoubleNear(0.3 / 6, 1e-9));
  EXPECT_THAT(shares.waiting, DoubleNear((6 - 3 - 0.6 - 0.3) / 6, 1e-9));
  EXPECT_THAT(shares.update, DoubleNear(0.5 / 3, 1e-9));
  EXPECT_THAT(shares.publish, DoubleNear(0.11 / 3, 1e-9));
  EXPECT_THAT(shares.collecting, DoubleNear(2.35 / 3, 1e-9));
  EXPECT_THAT(shares.update + shares.publish + shares.collecting + shares.other, DoubleNear(1, 1e-9));
  EXPECT_THAT(shares.transport, DoubleNear(0.06 / 3, 1e-9));  // 0.02 of receive, 0.04 of admit.
  // Waiting 2.1 / 6, the learner 0.65 / 3.
  EXPECT_THAT(shares.coordination(), DoubleNear(0.4 / 3, 1e-9));
}

TEST(ScalingStages, ContentionIsNeverNegative) {
  const auto times = ReadIterationTimes(SampleLines());
  ASSERT_TRUE(times.ok());
  EXPECT_EQ(ComputeShares(*times, 2, 0.02).contention, 0);  // Faster than the baseline.
  EXPECT_EQ(ComputeShares(*times, 2, 0).contention, 0);     // No baseline.
}

TEST(ScalingStages, RefusesWhatTheLearnerDoesNotWrite) {
  EXPECT_TRUE(absl::IsFailedPrecondition(ReadIterationTimes({SampleLines()[0]}).status()));
  const auto damaged = ReadIterationTimes({SampleLines()[0], "{\"seconds\": 3}"});
  EXPECT_TRUE(absl::IsDataLoss(damaged.status()));
  EXPECT_THAT(damaged.status().message(), HasSubstr("line 2"));
  EXPECT_TRUE(absl::IsDataLoss(ReadIterationTimes({"nonsense", SampleLines()[0]}).status()));
  EXPECT_TRUE(absl::IsDataLoss(ReadIterationTimes({SampleLines()[1], SampleLines()[0]}).status()));
}

}  // namespace
}  // namespace skein
