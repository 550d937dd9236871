// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "env/env.h"
#include "env/env_activity.h"
#include "env/env_options.h"

namespace skein {

// E environments stepped in place, one after the other, with time limits and automatic reset. An episode of environment
// i depends only on (seed, first_env + i, episode number, actions), not on which process or thread steps it. Not
// thread-safe: one per runner thread, except that other threads may Help with a Step. Allocates as Env may.
// No I/O.
// An environment fails if it throws, if it writes more or fewer observations or rewards than its spec says, if a value
// other than a reward is not finite (for rewards see Env::Step), or if a first observation, global state or metric is
// beyond its bound (base/number/number_bounds.h); of an episode that diverged, such a metric is 0 and no failure.
// failure() names the environment and the cause, and the VectorEnv must not be used further. Data made since the last
// ResetAll or LoadState must not be trained on, although its observations, rewards and flags are finite.
class VectorEnv {
 public:
  struct Options {
    std::string env_id;
    int size = 1;  // E
    uint64_t seed = 1;
    int max_episode_steps = 0;  // 0 = the environment's own limit.
    RandomPurpose reset_purpose = RandomPurpose::kEnvReset;
    // An observation after a step that is not finite ends the episode as diverged, as a reward does, and is no failure;
    // nor is a global state beyond its bound at the end of a diverged episode, which is 0 then.
    bool obs_may_diverge = false;
    EnvOptions env;  // Settings of particular environments.
  };
  // The result of one step. All buffers are owned by the VectorEnv and overwritten by the next Step.
  struct StepResult {
    const float* reward;        // [E, A]
    const uint8_t* terminated;  // [E]
    const uint8_t* truncated;   // [E]; never set together with terminated
    // [E, A, O]; row e is written only if environment e's episode ended: the observation after its last step, or the
    // last one before it if the simulation diverged (truncated, with reward 0 for that step).
    const float* final_obs;
    const double* episode_return;   // [E], summed over agents and steps; valid if the episode ended
    const int64_t* episode_length;  // [E]; valid if the episode ended
    // [E, A]: the alive mask of this step; whether the agent's part of the episode ended in this step in a terminal
    // state, with the episode or before it.
    const uint8_t* active;
    const uint8_t* agent_terminated;
    const float* final_state;      // [E, G], as final_obs
    const float* episode_metrics;  // [E, P], valid if the episode ended
    const uint8_t* diverged;       // [E]: truncated because the simulation diverged
  };

  // InvalidArgument: size < 1, max_episode_steps < 0, otherwise as MakeEnv. Internal: MuJoCo refuses the model.
  static absl::StatusOr<std::unique_ptr<VectorEnv>> Make(const Options& options);
  // The same over the given environments, all of one spec; env_id and size are ignored.
  // InvalidArgument: no environments, they differ in size or in their batch, max_episode_steps < 0.
  static absl::StatusOr<std::unique_ptr<VectorEnv>> Wrap(std::vector<std::unique_ptr<Env>> envs,
                                                         const Options& options);

  const EnvSpec& spec() const;  // max_episode_steps is the limit in force.
  int size() const;
  // Environments that threads in Help can step: size(), or 0 where one call steps all (EnvBatch).
  int shareable() const;
  // state_size() of environments with this spec.
  static int StateSize(const EnvSpec& spec);
  // S, doubles for each environment in SaveState: the environment's own and the VectorEnv's bookkeeping (episode, step,
  // return so far). 0 if the environments are not relocatable.
  int state_size() const;

  // OK, or from the first failure on Internal: "environment 12 of CartPole-v1, episode 3, step 17: ...". Another code
  // where building the environments anew would not help (HopelessEnv).
  const absl::Status& failure() const;
  // From now on `activity` records which environment is being called. It must outlive this; null: no recording.
  void SetActivity(EnvActivity* activity);

  // Begins episode `first_episode` of environments first_env .. first_env + E - 1. Step, Observe and SaveState need
  // this or LoadState first. REQUIRES: first_env + E <= 2^32, first_episode < 2^32.
  void ResetAll(uint64_t first_env, uint64_t first_episode = 0);
  // Continues environments first_env .. from `state` [E, S]. Row e is episode, step, return so far, then what the
  // environment saved. Where the loaded environment's observation is not finite or beyond its bound, the next episode
  // begins. InvalidArgument: a value is not finite or the bookkeeping is out of range; nothing has changed.
  // FailedPrecondition: the environments are not relocatable; nothing has changed.
  // Internal: failure().
  absl::Status LoadState(uint64_t first_env, const double* state);
  void SaveState(double* state) const;  // [E, S]; nothing if the environments are not relocatable.

  // action [E, A, D] or [E, A, 1]; continuous ones are clipped to the bounds here, NaN becomes the lower bound.
  // Environments whose episode ended are reset before this returns: Observe then shows the new episode.
  StepResult Step(const float* action);
  // Step, from other threads: steps environments that the VectorEnv's own thread has not begun, in this Step and those
  // that follow, until `leave` returns true. `leave` is called before each environment and after each sleep. Sleeps
  // while there is nothing to step, until the next Step or WakeHelpers(). Results are the same. `activity`, which may
  // be null, records this thread's calls. Any number of threads; all must have returned before this is destroyed.
  // Allocates. Returns the time spent stepping.
  absl::Duration Help(EnvActivity* activity, const std::function<bool()>& leave);
  void WakeHelpers();
  absl::Duration TakeHelped();  // Sum of the times that Help returned since the last call.

  void Observe(float* obs) const;        // [E, A, O]
  void GlobalState(float* state) const;  // [E, G]

  uint64_t env_index(int e) const;  // Global index of environment e.
  uint64_t episode(int e) const;    // Its current episode, from 0.
  uint32_t step(int e) const;       // Steps done in the current episode.
  ~VectorEnv();

 private:
  VectorEnv();
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace skein
