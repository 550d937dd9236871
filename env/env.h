// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "base/number/philox.h"

// The environment interface.   Env -> VectorEnv -> Runner
namespace skein {

// What an environment looks like from outside. Constant for its lifetime.
struct EnvSpec {
  std::string id;                              // Registered name, e.g. "HalfCheetah-v5".
  int num_agents = 1;                          // A >= 1; all agents share the sizes below.
  int obs_size = 0;                            // O, floats per agent.
  bool discrete = false;                       // Actions: true = one of action_size choices; false = action_size reals.
  int action_size = 0;                         // Number of choices, or D reals.
  std::vector<float> action_low, action_high;  // Bounds of each real, size D; empty if discrete.
  int global_state_size = 0;                   // G, floats for a central critic; 0 = none.
  int state_size = 0;                          // Doubles that SaveState writes; 0 if not relocatable.
  int max_episode_steps = 0;                   // Truncation after this many steps; 0 = never. Enforced by VectorEnv.
  // Its state can be saved and loaded into another instance, in another process too. Otherwise SaveState and LoadState
  // are never called, and an episode ends where its instance does.
  bool relocatable = true;
  double reward_threshold = 0;               // Return at which the task counts as solved; 0 = none. For people.
  std::vector<std::string> episode_metrics;  // Names of what EpisodeMetrics writes, P of them, snake_case.
};

// One environment of A agents. An episode is Reset, then Step until terminated or truncated.
// A pure function of its random streams and actions: the same streams and actions give the same bits.
// Not thread-safe; one thread at a time, any thread. Other threads use other environments of the same kind meanwhile,
// also those of the same block. Nothing here may allocate after construction.
class Env {
 public:
  virtual ~Env() = default;
  virtual const EnvSpec& spec() const = 0;

  // Which of the run's environments this is from now on; told before Reset and LoadState. Episodes must not depend on
  // it, for they already do through `random`.
  virtual void SetEnvIndex(uint64_t env_index) { (void)env_index; }

  // Begins an episode. `random` is keyed by (run seed, env index, episode); take from it in a fixed order.
  virtual void Reset(RandomStream& random) = 0;

  // action: continuous [A, D], clipped to the bounds by the caller; discrete [A, 1], the choice as a float.
  // reward: [A], written. Returns true if the episode terminated (not: ran out of time).
  // A simulation that has come apart writes a reward that is not finite; VectorEnv then truncates the episode.
  virtual bool Step(const float* action, float* reward) = 0;

  virtual void Observe(float* obs) const = 0;                    // [A, O]
  virtual void GlobalState(float* state) const { (void)state; }  // [G]

  // [A], 1 = the agent takes part in the next step; 0 = its part of the episode is over: its actions do nothing and
  // what it observes means nothing; what it is still rewarded with is its share of the team's and counts for its last
  // action. All take part after Reset; an agent never comes back.
  virtual void Active(uint8_t* active) const { std::fill_n(active, spec().num_agents, uint8_t{1}); }
  // [P], of the episode so far.
  virtual void EpisodeMetrics(float* metrics) const { (void)metrics; }

  // The complete physical state, state_size doubles: after LoadState the same actions give the same bits. Overridden by
  // all that are relocatable.
  virtual void SaveState(double* state) const { (void)state; }
  virtual void LoadState(const double* state) { (void)state; }
};

}  // namespace skein
