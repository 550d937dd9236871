// SPDX-License-Identifier: Apache-2.0
#include "sweep/first_rung.h"

#include "base/config/config.h"
#include "gtest/gtest.h"

namespace skein {
namespace {

uint64_t FirstRung(uint64_t total, uint32_t num_envs, const char* metric, uint32_t limit = 0, uint64_t given = 0) {
  v1::RunConfig base;
  ApplyDefaults(&base);
  base.mutable_env()->set_id("HalfCheetah-v5");  // Its episodes have 1,000 steps.
  base.mutable_env()->set_max_episode_steps(limit);
  base.mutable_rollout()->set_num_envs(num_envs);
  base.set_total_steps(total);
  v1::SweepConfig config;
  config.set_metric(metric);
  config.mutable_scheduler()->set_kind(v1::SWEEP_SCHEDULE_ASHA);
  config.mutable_scheduler()->set_reduction(4);
  config.mutable_scheduler()->set_min_steps(given);
  ChooseFirstRung(base, &config);
  return config.scheduler().min_steps();
}

TEST(FirstRung, IsNotBeforeAnEpisodeCanHaveEnded) {
  // 3e6 / 64 = 46,875 is before the first episodes of 64 environments end.
  EXPECT_EQ(FirstRung(3000000, 64, "episode_return_mean"), 64000u);
  EXPECT_EQ(FirstRung(3000000, 64, "episode_metrics.x_velocity"), 64000u);
  EXPECT_EQ(FirstRung(3000000, 64, "update.kl"), 46875u);
  EXPECT_EQ(FirstRung(3000000, 64, "episode_return_mean", 500), 46875u);
  EXPECT_EQ(FirstRung(30000000, 64, "episode_return_mean"), 468750u);
  EXPECT_EQ(FirstRung(100000, 64, "episode_return_mean"), 25000u);  // A rung is left.
}

TEST(FirstRung, IsWhereTheFileSays) { EXPECT_EQ(FirstRung(3000000, 64, "episode_return_mean", 0, 5000), 5000u); }

}  // namespace
}  // namespace skein
