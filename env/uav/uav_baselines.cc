// SPDX-License-Identifier: Apache-2.0
#include "env/uav/uav_baselines.h"

#include "env/uav/uav_layout.h"

namespace skein {
namespace {

// The largest cosine of the angle to (x, y) is that of the smallest angle.
int NearestHeading(float x, float y) {
  const auto cosine = [&](int choice) { return x * kUavDirectionX[choice] + y * kUavDirectionY[choice]; };
  int best = 1;
  for (int choice = 2; choice < kUavChoices; ++choice) {
    if (cosine(choice) > cosine(best)) best = choice;
  }
  return best;
}

}  // namespace

void FlyToTargets(const UavOptions& options, int agents, const float* obs, float* action) {
  const UavLayout layout = MakeUavLayout(UavTask::kNavigate, options);
  for (int agent = 0; agent < agents; ++agent) {
    const float* const direction = obs + agent * layout.obs_size + layout.obs_target + 2;  // Of length 1.
    if (options.continuous) {
      action[2 * agent] = direction[0];
      action[2 * agent + 1] = direction[1];
    } else {
      action[agent] = static_cast<float>(NearestHeading(direction[0], direction[1]));
    }
  }
}

}  // namespace skein
