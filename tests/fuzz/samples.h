// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "learner/network/actor_critic.h"
#include "learner/run/checkpoint.h"

namespace skein::fuzz {

// The network that policies are read for: small, because one is made for each input.
inline ActorCriticOptions SampleNetwork() {
  ActorCriticOptions options;
  options.obs_size = 2;
  options.action_size = 1;
  options.hidden = {2};
  return options;
}

// A checkpoint that does not change, so that the checksums in a manifest of it are right for ever.
inline Checkpoint SampleCheckpoint() {
  Checkpoint checkpoint;
  checkpoint.env_steps = 4096;
  checkpoint.iteration = 2;
  checkpoint.episodes = 7;
  checkpoint.env_id = "CartPole-v1";
  checkpoint.config_yaml = "seed: 1\n";
  checkpoint.model = {{"policy.weight", torch::arange(6, torch::kFloat32).reshape({2, 3})}};
  checkpoint.optimizer = {{"step", torch::arange(1, 3, torch::kInt64)}};
  checkpoint.state = {{"env_state", torch::arange(4, torch::kFloat64).reshape({1, 4})}};
  checkpoint.counters = {{"collected", 4096}, {"trained", 4096}};
  return checkpoint;
}

}  // namespace skein::fuzz
