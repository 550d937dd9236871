// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "learner/network/actor_critic.h"
#include "learner/network/normalizer.h"
#include "skein/v1/config.pb.h"
#include "skein/v1/policy.pb.h"

namespace skein {

// Copies the policy part of `network` and `scale` into a snapshot and computes its digest. Tensors: PolicyParameters(),
// then "obs_normalizer.mean" and "obs_normalizer.inv_std". `transport` selects precision and compression: with bf16,
// matrices become bfloat16; vectors (biases, log_std, observation scale) are few numbers and stay float32.
// ReadSnapshot (policy/snapshot.h) reads it.
v1::PolicySnapshot MakeSnapshot(uint64_t version, const ActorCritic& network, const ObsScale& scale,
                                const v1::TransportConfig& transport = {});

}  // namespace skein
