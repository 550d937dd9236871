// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>

namespace skein {

// Names of the stages into which metrics and reports divide a member's time. Other stages are not shown.
inline constexpr std::array<const char*, 5> kActorStages = {"env_step", "inference", "build", "send", "wait"};
inline constexpr std::array<const char*, 6> kLearnerStages = {"receive", "admit",   "barrier",
                                                              "update",  "publish", "checkpoint"};

}  // namespace skein
