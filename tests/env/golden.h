// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "env/env.h"

namespace skein {

// The parsed tests/env/golden/`name`, made by scripts/make_env_golden.py.
nlohmann::json ReadGolden(const std::string& name);

// How far an observation or reward may be from Gymnasium's: max(absolute, relative * |number|).
struct Tolerance {
  double absolute = 0;
  double relative = 0;
};

// Loads the trajectory's start into `env`, plays the first `steps` of its actions (all if fewer) and expects its
// observations, rewards and terminations.
void ExpectTrajectory(Env& env, const nlohmann::json& trajectory, int steps, Tolerance tolerance);

}  // namespace skein
