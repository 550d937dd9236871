// SPDX-License-Identifier: Apache-2.0
#include "learner/run/staged_tensors.h"

#include <torch/types.h>

#include <vector>

namespace skein {
namespace {

// A tensor over memory that the caller keeps alive.
template <typename Value>
torch::Tensor View(const std::vector<Value>& values, std::vector<int64_t> shape, torch::ScalarType dtype) {
  return torch::from_blob(const_cast<Value*>(values.data()), shape, torch::TensorOptions().dtype(dtype));
}

}  // namespace

Batch MakeBatch(const StagedBatch& staged, const ActorCriticOptions& network, int64_t global_state_size) {
  const int64_t T = staged.steps(), M = staged.columns(), O = network.obs_size;
  Batch batch;
  batch["obs"] = View(staged.obs, {T + 1, M, O}, torch::kFloat32);
  batch["action"] = network.discrete ? View(staged.action_index, {T, M}, torch::kInt64)
                                     : View(staged.action, {T, M, network.action_size}, torch::kFloat32);
  batch["log_prob"] = View(staged.log_prob, {T, M}, torch::kFloat32);
  batch["reward"] = View(staged.reward, {T, M}, torch::kFloat32);
  batch["terminated"] = View(staged.terminated, {T, M}, torch::kUInt8).to(torch::kBool);
  batch["truncated"] = View(staged.truncated, {T, M}, torch::kUInt8).to(torch::kBool);
  const int64_t truncations = static_cast<int64_t>(staged.final_index.size());
  batch["final_obs"] = View(staged.final_obs, {truncations, O}, torch::kFloat32);
  batch["final_index"] = View(staged.final_index, {truncations}, torch::kInt64);
  if (!staged.active.empty()) batch["active"] = View(staged.active, {T, M}, torch::kUInt8).to(torch::kBool);
  if (const int64_t G = global_state_size; G > 0) {
    batch["state"] = View(staged.state, {T + 1, staged.num_envs(), G}, torch::kFloat32);
    batch["final_state"] =
        View(staged.final_state, {static_cast<int64_t>(staged.final_state.size()) / G, G}, torch::kFloat32);
  }
  return batch;
}

}  // namespace skein
