// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "env/env.h"
#include "env/mujoco/arguments.h"

namespace skein {

// Steps only the model of a MuJoCo environment, to measure the physical limit of its speed. Same model, frame skip and
// kind of starting state as the registered environment; no observation, reward, termination or statistics.
// Not thread-safe: one per thread.
class BareLoop {
 public:
  // The form of the model: as the environment steps it, or as it was published (ModelForm). States are the same to the
  // bit.
  enum class Form { kStepped, kPublished };

  struct Options {
    MujocoOptions mujoco;
    uint64_t seed = 1, env_index = 0;  // Key the starting states as in VectorEnv.
    // Steps of episodes 0, 1, ..., each at least 1; after the last one the first follows again. Empty: always new
    // episodes, each as long as the environment's limit.
    std::vector<int> episode_steps;
    Form form = Form::kStepped;
  };

  // NotFound: no MuJoCo environment of this name. Internal: MuJoCo refuses the model. Otherwise as FindMujocoTask.
  static absl::StatusOr<std::unique_ptr<BareLoop>> Make(const std::string& env_id, const Options& options);
  virtual ~BareLoop() = default;

  // Runs `steps` env steps. The actions are the rows of `actions` [rows, D], used in turn.
  virtual void Run(const float* actions, int64_t rows, int64_t steps) = 0;
  // Simulated seconds since the episode began.
  virtual double time() const = 0;
};

// Steps of each of the episodes that environment `env_index` plays with `actions` [rows, D], for BareLoop::Options: a
// body that has fallen costs more than one that stands, so that a limit must step the same episodes. They end where the
// task terminates or `limit` steps are done, the last one with the rows. `env` is left within an episode.
std::vector<int> EpisodeSteps(Env& env, uint64_t seed, uint64_t env_index, int limit, const float* actions,
                              int64_t rows);

}  // namespace skein
