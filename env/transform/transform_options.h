// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

namespace skein {

// One change of what a policy observes, does or is rewarded with (EnvTransform in config.proto).
struct TransformOptions {
  enum class Kind { kClip, kScale, kSquash, kStack, kHide, kTimeLimit, kRewardScale, kRewardClip };
  std::string setting;  // Where it stands, for messages: "env.hide", "env.transforms[1]".
  Kind kind = Kind::kClip;
  int count = 0;                     // kStack: observations. kTimeLimit: steps.
  std::vector<std::string> columns;  // kHide: "3", "8-16" or "velocities".
  bool critic_sees_hidden = false;   // kHide: the columns become part of the global state.
  double factor = 1;                 // kRewardScale
  double low = 0, high = 0;          // kRewardClip
};

}  // namespace skein
