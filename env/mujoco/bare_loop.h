// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"

namespace skein {

// The physical limit of a MuJoCo environment: its model stepped with nothing around it. Same model, frame skip, kind of
// starting state and time limit as the registered environment; no observation, reward, termination or statistics.
// Not thread-safe: one per thread.
class BareLoop {
 public:
  // Which form of a model: as the environment steps it, or as it was published. States are the same to the bit.
  enum class Form { kStepped, kPublished };

  // `seed` and `env_index` key the starting states as in VectorEnv; after `episodes` of them it begins again with the
  // first, 0 = never. NotFound: no MuJoCo environment of this name.
  // Internal: MuJoCo refuses the model. REQUIRES: max_episode_steps >= 0; 0 = the environment's own limit.
  static absl::StatusOr<std::unique_ptr<BareLoop>> Make(const std::string& env_id, uint64_t seed, uint64_t env_index,
                                                        int max_episode_steps, uint64_t episodes = 0,
                                                        Form form = Form::kStepped);
  virtual ~BareLoop() = default;

  // Takes `steps` env steps. The actions are rows of `actions` [rows, D] in turn.
  virtual void Run(const float* actions, int64_t rows, int64_t steps) = 0;
  // Simulated seconds of the episode.
  virtual double time() const = 0;
};

}  // namespace skein
