// SPDX-License-Identifier: Apache-2.0
#include "tests/env/golden.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <vector>

namespace skein {
namespace {

void ExpectNear(double got, double want, Tolerance tolerance, const std::string& what) {
  EXPECT_NEAR(got, want, std::max(tolerance.absolute, tolerance.relative * std::abs(want))) << what;
}

}  // namespace

nlohmann::json ReadGolden(const std::string& name) {
  const std::string path = "tests/env/golden/" + name;
  std::ifstream file(path);
  EXPECT_TRUE(file.good()) << path << ": run the test in the repository root";
  return nlohmann::json::parse(file);
}

void ExpectTrajectory(Env& env, const nlohmann::json& trajectory, int steps, Tolerance tolerance) {
  const EnvSpec& spec = env.spec();
  std::vector<double> start = trajectory["start"];
  ASSERT_EQ(static_cast<int>(start.size()), spec.state_size);
  env.LoadState(start.data());

  const auto& rows = trajectory["steps"];
  ASSERT_GT(rows.size(), 0u);
  for (int t = 0; t < std::min<int>(steps, rows.size()); ++t) {
    const std::string at = spec.id + " step " + std::to_string(t);
    const std::vector<float> action = rows[t]["action"];
    const std::vector<double> want_obs = rows[t]["obs"];
    ASSERT_EQ(static_cast<int>(want_obs.size()), spec.obs_size);

    float reward = 0;
    const bool terminated = env.Step(action.data(), &reward);
    std::vector<float> obs(spec.obs_size);
    env.Observe(obs.data());
    for (int i = 0; i < spec.obs_size; ++i)
      ExpectNear(obs[i], want_obs[i], tolerance, at + " obs " + std::to_string(i));
    ExpectNear(reward, rows[t]["reward"], tolerance, at + " reward");
    EXPECT_EQ(terminated, rows[t].value("terminated", false)) << at;
    if (testing::Test::HasFailure()) return;  // The rest would only repeat it.
  }
}

}  // namespace skein
