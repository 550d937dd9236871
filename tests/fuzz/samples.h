// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "learner/run/checkpoint.h"
#include "policy/policy_spec.h"
#include "tests/testing/make_tensor.h"

namespace skein::fuzz {

// The network that policies are read for: small, because one is made for each input.
inline PolicySpec SamplePolicy() {
  PolicySpec spec;
  spec.obs_size = 2;
  spec.action_size = 1;
  spec.hidden = {2};
  return spec;
}

// A checkpoint that does not change, so that the checksums in a manifest of it are right for ever.
inline Checkpoint SampleCheckpoint() {
  Checkpoint checkpoint;
  checkpoint.env_steps = 4096;
  checkpoint.iteration = 2;
  checkpoint.episodes = 7;
  checkpoint.env_id = "CartPole-v1";
  checkpoint.config_yaml = "seed: 1\n";
  checkpoint.model = {MakeTensor<float>("policy.weight", v1::DATA_TYPE_FLOAT32, {2, 3}, {0, 1, 2, 3, 4, 5})};
  checkpoint.optimizer = {MakeTensor<int64_t>("step", v1::DATA_TYPE_INT64, {2}, {1, 2})};
  checkpoint.state = {MakeTensor<double>("env_state", v1::DATA_TYPE_FLOAT64, {1, 4}, {0, 1, 2, 3})};
  checkpoint.counters = {{"collected", 4096}, {"trained", 4096}};
  return checkpoint;
}

}  // namespace skein::fuzz
