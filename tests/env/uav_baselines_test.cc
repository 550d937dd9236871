// SPDX-License-Identifier: Apache-2.0
#include "env/uav/uav_baselines.h"

#include <vector>

#include "env/uav/uav_layout.h"
#include "gmock/gmock.h"

namespace skein {
namespace {

using testing::ElementsAre;

// Observations of UAVs that see their targets in these directions, and nothing else.
std::vector<float> Seeing(const UavOptions& options, const std::vector<std::vector<float>>& directions) {
  const UavLayout layout = MakeUavLayout(UavTask::kNavigate, options);
  std::vector<float> obs(directions.size() * layout.obs_size);
  for (size_t agent = 0; agent < directions.size(); ++agent) {
    float* const target = obs.data() + agent * layout.obs_size + layout.obs_target;
    target[2] = directions[agent][0];
    target[3] = directions[agent][1];
  }
  return obs;
}

TEST(FlyToTargets, ChoosesTheHeadingWithTheSmallestAngle) {
  const UavOptions options;
  // Angles of 0, 45, 90, ..., 315 degrees, then of 36.9 (nearest: 45), 8.1 (0) and -30 (-45).
  const std::vector<float> obs = Seeing(options, {{1, 0},
                                                  {0.7071f, 0.7071f},
                                                  {0, 1},
                                                  {-0.7071f, 0.7071f},
                                                  {-1, 0},
                                                  {-0.7071f, -0.7071f},
                                                  {0, -1},
                                                  {0.7071f, -0.7071f},
                                                  {0.8f, 0.6f},
                                                  {0.99f, 0.141f},
                                                  {0.866f, -0.5f}});
  std::vector<float> action(11);
  FlyToTargets(options, 11, obs.data(), action.data());
  EXPECT_THAT(action, ElementsAre(1, 2, 3, 4, 5, 6, 7, 8, 2, 1, 8));
}

TEST(FlyToTargets, FliesStraightThereIfItCan) {
  UavOptions options;
  options.continuous = true;
  const std::vector<float> obs = Seeing(options, {{0.8f, -0.6f}, {0, 1}});
  std::vector<float> action(4);
  FlyToTargets(options, 2, obs.data(), action.data());
  EXPECT_THAT(action, ElementsAre(0.8f, -0.6f, 0, 1));
}

}  // namespace
}  // namespace skein
