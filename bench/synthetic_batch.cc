// SPDX-License-Identifier: Apache-2.0
#include "bench/synthetic_batch.h"

#include <torch/types.h>
#include <torch/utils.h>

#include <algorithm>
#include <vector>

#include "absl/strings/str_cat.h"
#include "learner/network/distribution.h"
#include "policy/policy.h"
#include "trajectory/env_spec_info.h"

namespace skein {
namespace {

constexpr int64_t kChunk = 16384;  // Rows whose actions are made at once.

template <typename Value>
torch::Tensor View(std::vector<Value>& values, int64_t rows, int64_t width, torch::ScalarType dtype) {
  return torch::from_blob(values.data(), {rows, width}, torch::TensorOptions().dtype(dtype));
}

// Sets action and log_prob from obs.
void Act(const Policy& policy, const EnvSpec& spec, StagedBatch* batch) {
  const int64_t rows = batch->steps() * batch->columns(), O = spec.obs_size, D = spec.action_size;
  const torch::Tensor all_obs = View(batch->obs, rows, O, torch::kFloat32);  // Of T steps, without the last.
  const torch::Tensor all_log_prob = View(batch->log_prob, rows, 1, torch::kFloat32);
  for (int64_t first = 0; first < rows; first += kChunk) {
    const int64_t count = std::min(kChunk, rows - first);
    const torch::Tensor head = policy.Head(all_obs.narrow(0, first, count));
    torch::Tensor action, log_prob;
    if (spec.discrete) {
      action = head.softmax(1).multinomial(1);
      log_prob = CategoricalLogProb(head, action.squeeze(1));
      View(batch->action_index, rows, 1, torch::kInt64).narrow(0, first, count).copy_(action);
    } else {
      action = head + policy.log_std().exp() * torch::randn_like(head);
      log_prob = GaussianLogProb(head, policy.log_std(), action);
      View(batch->action, rows, D, torch::kFloat32).narrow(0, first, count).copy_(action);
    }
    all_log_prob.narrow(0, first, count).copy_(log_prob.unsqueeze(1));
  }
}

// Environment e of N is truncated first after its (e / N)-th part of the limit, then every `limit` steps.
void EndEpisodes(int64_t limit, const EnvSpec& spec, StagedBatch* batch) {
  if (limit == 0) return;
  const int64_t T = batch->steps(), N = batch->num_envs(), A = spec.num_agents;
  for (int64_t t = 0; t < T; ++t) {
    for (int64_t e = 0; e < N; ++e) {
      if ((t + e * limit / N) % limit != limit - 1) continue;
      const auto state = batch->state.begin() + (t * N + e) * spec.global_state_size;
      batch->final_state.insert(batch->final_state.end(), state, state + spec.global_state_size);
      for (int64_t column = e * A; column < (e + 1) * A; ++column) {
        const int64_t row = t * batch->columns() + column;
        batch->truncated[row] = 1;
        batch->final_index.push_back(row);
        const auto obs = batch->obs.begin() + row * spec.obs_size;
        batch->final_obs.insert(batch->final_obs.end(), obs, obs + spec.obs_size);
      }
    }
  }
}

}  // namespace

absl::StatusOr<std::unique_ptr<StagedBatch>> MakeSyntheticBatch(const v1::RunConfig& config, const EnvSpec& spec,
                                                                const v1::PolicySnapshot& snapshot) {
  const auto policy = Policy::FromSnapshot(snapshot, MakeActorCriticOptions(config.model(), spec));
  if (!policy.ok()) return policy.status();
  FragmentShape shape;
  shape.num_envs = config.rollout().num_envs();
  shape.steps = config.rollout().steps_per_iteration() / shape.num_envs;
  shape.spec = MakeEnvSpecInfo(spec);
  auto batch = std::make_unique<StagedBatch>(shape, /*slots=*/1);
  try {
    const torch::NoGradGuard no_grad;
    torch::manual_seed(config.seed());
    View(batch->obs, static_cast<int64_t>(batch->obs.size()), 1, torch::kFloat32).normal_();
    View(batch->state, static_cast<int64_t>(batch->state.size()), 1, torch::kFloat32).normal_();
    std::fill(batch->active.begin(), batch->active.end(), uint8_t{1});
    View(batch->reward, static_cast<int64_t>(batch->reward.size()), 1, torch::kFloat32).normal_();
    Act(**policy, spec, batch.get());
  } catch (const std::exception& error) {
    return absl::InternalError(absl::StrCat("Torch failed while making a batch: ", error.what()));
  }
  const int64_t limit = config.env().max_episode_steps();
  EndEpisodes(limit > 0 ? limit : spec.max_episode_steps, spec, batch.get());
  return batch;
}

}  // namespace skein
