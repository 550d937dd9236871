// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "env/env.h"
#include "learner/network/actor_critic.h"
#include "learner/network/normalizer.h"
#include "policy/packed_layer.h"
#include "skein/v1/config.pb.h"
#include "skein/v1/policy.pb.h"

namespace skein {

// REQUIRES: config is resolved (every field set). A central critic reads an agent's observation and the global state,
// in this order (Yu et al. 2022, "The surprising effectiveness of PPO in cooperative multi-agent games", 5.3). A shared
// trunk reads observations and so rules it out.
ActorCriticOptions MakeActorCriticOptions(const v1::ModelConfig& config, const EnvSpec& spec);

// A published policy, ready to act. Immutable: share by shared_ptr<const Policy>, any number of threads.
class Policy {
 public:
  // `network` is used read-only from now on.
  Policy(uint64_t version, std::shared_ptr<ActorCritic> network, ObsScale scale);

  // Reads every form of MakeSnapshot. InvalidArgument: a tensor is missing, superfluous, of the wrong shape, not
  // finite, or its compressed data are damaged; DataLoss: digest differs.
  static absl::StatusOr<std::shared_ptr<const Policy>> FromSnapshot(const v1::PolicySnapshot& snapshot,
                                                                    const ActorCriticOptions& options);

  uint64_t version() const { return version_; }
  // Raw observations [B, O] float32 -> mean [B, D] or logits [B, C], float32, without gradients: an inference tensor,
  // to be read or cloned, not to be saved for a backward pass. On one processor, a row's result is the same to the bit
  // whatever the other rows are.
  torch::Tensor Head(const torch::Tensor& raw_obs) const;
  // The same by hand: raw_obs [rows, O] -> head [rows, head_size()]. At a few rows a step, making tensors costs more
  // than their arithmetic.
  void Head(const float* raw_obs, int64_t rows, float* head) const;
  int64_t head_size() const { return layers_.back().outputs(); }  // D or C.
  // float32 [D]; undefined if discrete.
  torch::Tensor log_std() const;

 private:
  uint64_t version_;
  std::shared_ptr<const ActorCritic> network_;
  ObsScale scale_;
  std::vector<PackedLayer> layers_;  // Of the policy, head last.
};

// XXH3-64 over names and bytes of the snapshot's tensors in order.
uint64_t SnapshotDigest(const v1::PolicySnapshot& snapshot);

// Copies the policy part of `network` and `scale` into a snapshot and computes its digest. Tensors: PolicyParameters(),
// then "obs_normalizer.mean" and "obs_normalizer.inv_std". In the form that `transport` says: with bf16 the matrices
// are rounded; what is added to or multiplied with all of their products is few numbers and stays as it is.
v1::PolicySnapshot MakeSnapshot(uint64_t version, const ActorCritic& network, const ObsScale& scale,
                                const v1::TransportConfig& transport = {});

}  // namespace skein
