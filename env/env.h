// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "base/number/philox.h"

// The environment interface.   Env -> VectorEnv -> Runner
namespace skein {

// The sizes and properties of an environment. Constant for its lifetime.
struct EnvSpec {
  std::string id;                              // Registered name, e.g. "HalfCheetah-v5".
  int num_agents = 1;                          // A >= 1; all agents share the sizes below.
  int obs_size = 0;                            // O, floats per agent.
  bool discrete = false;                       // Actions: true = one of action_size choices; false = action_size reals.
  int action_size = 0;                         // Number of choices, or D reals.
  std::vector<float> action_low, action_high;  // Bounds of each real, size D; empty if discrete.
  bool clip_actions = true;                    // Whether VectorEnv clips reals to the bounds before Step.
  int global_state_size = 0;                   // G, floats for a central critic; 0 = none.
  int state_size = 0;                          // Doubles that SaveState writes; 0 if not relocatable.
  int max_episode_steps = 0;                   // Truncation after this many steps; 0 = never. Enforced by VectorEnv.
  // Whether the state can be saved and loaded into another instance, also in another process. If false, SaveState and
  // LoadState are never called, and an episode cannot outlive its instance.
  bool relocatable = true;
  double reward_threshold = 0;               // Return at which the task counts as solved; 0 = none. Display only.
  std::vector<std::string> episode_metrics;  // Names of what EpisodeMetrics writes, P of them, snake_case.
  std::vector<int> velocity_columns;         // Of an observation, in ascending order; empty = not known.
};

// Environments of one kind that take their steps together, because their worlds do: in another process, for instance.
class EnvBatch {
 public:
  virtual ~EnvBatch() = default;

  // Takes a step of all environments of the batch. Env::Step of each then has the result and does not look at its own
  // action. action: [E, A, D] or [E, A, 1] as for Env::Step. next_seed: [E], the first number of the stream that
  // Env::Reset gets next, for worlds that begin the next episode in the step that ends one.
  virtual void Step(const float* action, const uint32_t* next_seed) = 0;
};

// One environment of A agents. An episode is one Reset, then Steps until it terminates or is truncated.
// Deterministic: the same random streams and actions give the same bits.
// Not thread-safe: one thread at a time, any thread; others may use other environments of the kind, or of the same env
// group, meanwhile. No method may allocate after construction, but for what a thread needs once for a whole kind.
class Env {
 public:
  virtual ~Env() = default;
  virtual const EnvSpec& spec() const = 0;

  // Sets the environment's index in the run. Called before Reset and LoadState. Episodes must not depend on it
  // directly: `random` is already keyed by it.
  virtual void SetEnvIndex(uint64_t env_index) { (void)env_index; }

  // The batch that steps this environment; the same for all environments that MakeEnvs made together. Null: it steps by
  // itself.
  virtual EnvBatch* batch() { return nullptr; }

  // Begins an episode. `random` is keyed by (run seed, env index, episode); draw from it in a fixed order.
  virtual void Reset(RandomStream& random) = 0;

  // action: continuous [A, D], clipped to the bounds by the caller if spec().clip_actions; discrete [A, 1], the choice
  // as a float.
  // reward: [A], written. Returns true if the episode terminated; time limits are not counted as termination.
  // A simulation that has diverged writes a reward that is not finite; VectorEnv then truncates the episode.
  virtual bool Step(const float* action, float* reward) = 0;

  // Whether the last Step ended the episode without terminating it, as a world with a time limit of its own does.
  virtual bool truncated() const { return false; }

  virtual void Observe(float* obs) const = 0;                    // [A, O]
  virtual void GlobalState(float* state) const { (void)state; }  // [G]

  // [A], the alive mask of the next step. 0 = the agent's part of the episode is over: its actions have no effect and
  // its observation has no meaning. A later reward is its share of the team's reward and is credited to its last
  // action. All agents are alive after Reset; a mask of 0 stays 0 until the next Reset.
  virtual void Active(uint8_t* active) const { std::fill_n(active, spec().num_agents, uint8_t{1}); }
  // [P], the metrics of the episode so far.
  virtual void EpisodeMetrics(float* metrics) const { (void)metrics; }

  // The complete physical state, state_size doubles: after LoadState the same actions give the same bits. Every
  // relocatable environment overrides both.
  virtual void SaveState(double* state) const { (void)state; }
  virtual void LoadState(const double* state) { (void)state; }
};

}  // namespace skein
