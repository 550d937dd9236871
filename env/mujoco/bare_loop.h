// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"

namespace skein {

// Steps only the model of a MuJoCo environment, to measure the physical limit of its speed. Same model, frame skip,
// kind of starting state and time limit as the registered environment; no observation, reward, termination or
// statistics.
// Not thread-safe: one per thread.
class BareLoop {
 public:
  // The form of the model: as the environment steps it, or as it was published (ModelForm). States are the same to the
  // bit.
  enum class Form { kStepped, kPublished };

  // `seed` and `env_index` key the starting states as in VectorEnv. After `episodes` episodes the first one follows
  // again; 0 = never. NotFound: no MuJoCo environment of this name.
  // Internal: MuJoCo refuses the model. REQUIRES: max_episode_steps >= 0; 0 = the environment's own limit.
  static absl::StatusOr<std::unique_ptr<BareLoop>> Make(const std::string& env_id, uint64_t seed, uint64_t env_index,
                                                        int max_episode_steps, uint64_t episodes = 0,
                                                        Form form = Form::kStepped);
  virtual ~BareLoop() = default;

  // Runs `steps` env steps. The actions are the rows of `actions` [rows, D], used in turn.
  virtual void Run(const float* actions, int64_t rows, int64_t steps) = 0;
  // Simulated seconds since the episode began.
  virtual double time() const = 0;
};

}  // namespace skein
