// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "env/env.h"
#include "env/env_options.h"

namespace skein {

// A recorded episode, for drawing.   VectorEnv -> RecordingEnv -> RecordedEpisode -> RenderEpisode
struct RecordedEpisode {
  EnvSpec spec;
  EnvOptions options;
  std::string policy;  // As EvaluationResult.
  uint64_t seed = 0;
  uint32_t episode = 0;
  std::vector<std::vector<double>> states;  // As Env::SaveState writes them: at the reset, then after each step.
};

// Wraps `env` to record the states of its first episode in `states`, which must outlive it.
std::unique_ptr<Env> MakeRecordingEnv(std::unique_ptr<Env> env, std::vector<std::vector<double>>* states);

}  // namespace skein
