// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>

namespace skein {

// What a member's time is divided into, as its metrics and its reports name it. Others are not shown.
inline constexpr std::array<const char*, 5> kActorStages = {"env_step", "inference", "build", "send", "wait"};
inline constexpr std::array<const char*, 6> kLearnerStages = {"receive", "admit",   "barrier",
                                                              "update",  "publish", "checkpoint"};

}  // namespace skein
