// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "env/env.h"

// RepeatPrevious-v0: an environment that shows whether a memory is learned.
namespace skein {

struct RepeatPreviousOptions {
  int delay = 4;    // K, 1 to 1,000.
  int choices = 4;  // Different observations, and actions; 2 to 1,000.
};

// RepeatPrevious-v0: a diagnosis of memories, after the task of that name in POPGym (Morad et al. 2023). Each step
// shows one of `choices` symbols, drawn uniformly; the right action names the symbol that was shown K steps before.
// Without a memory no policy is better than chance. An episode has 64 + K steps and never terminates. obs: the symbol,
// one-hot. Reward: 1 for the right action from step K on, so that the best return is 64. State saved: key of the
// episode's symbols, steps.
EnvSpec MakeRepeatPreviousSpec(const RepeatPreviousOptions& options);
std::unique_ptr<Env> MakeRepeatPrevious(const RepeatPreviousOptions& options);

}  // namespace skein
