// SPDX-License-Identifier: Apache-2.0
#include "bench/synthetic_batch.h"

#include <torch/types.h>
#include <torch/utils.h>

#include <algorithm>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/process/cores.h"
#include "learner/network/distribution.h"
#include "learner/optimize/thread_team.h"
#include "policy/snapshot.h"
#include "trajectory/env_spec_info.h"

namespace skein {
namespace {

constexpr int64_t kChunk = 16384;        // Rows whose actions are made at once.
constexpr int64_t kRowsOfAThread = 256;  // At least.

template <typename Value>
torch::Tensor View(absl::Span<Value> values, int64_t rows, int64_t width, torch::ScalarType dtype) {
  return torch::from_blob(values.data(), {rows, width}, torch::TensorOptions().dtype(dtype));
}

// Sets action and log_prob from obs.
void Act(const Policy& policy, const EnvSpec& spec, Columns* batch) {
  const int64_t rows = batch->steps() * batch->columns(), O = spec.obs_size, D = spec.action_size;
  const torch::Tensor all_obs =
      View(batch->values<float>("obs"), rows, O, torch::kFloat32);  // Of T steps, without the last.
  const torch::Tensor all_log_prob = View(batch->values<float>("log_prob"), rows, 1, torch::kFloat32);
  const torch::Tensor log_std = torch::tensor(policy.log_std());
  // With a memory step by step, else as many rows at once as there may be.
  const int64_t P = policy.spec().state_size(), M = batch->columns(), N = batch->share_envs();
  std::vector<float> state(static_cast<size_t>(M * P));
  ThreadTeam team(static_cast<int>(Cores()) - 1);
  const absl::Span<const uint8_t> ended = batch->values<uint8_t>("ended");
  const int64_t chunk = P > 0 ? M : kChunk;
  for (int64_t first = 0; first < rows; first += chunk) {
    const int64_t count = std::min(chunk, rows - first), H = policy.spec().head_size();
    const torch::Tensor head = torch::empty({count, H});
    const float* obs = all_obs.data_ptr<float>() + first * O;
    float* to = head.data_ptr<float>();
    // Rows do not depend on each other.
    const int64_t parts = std::clamp<int64_t>(count / kRowsOfAThread, 1, team.size());
    team.Run(static_cast<int>(parts), [&](int part) {
      const int64_t begin = count * part / parts, end = count * (part + 1) / parts;
      float* own = state.data() + begin * P;
      policy.Act(obs + begin * O, own, end - begin, to + begin * H, own);
    });
    for (int64_t e = 0; e < (P > 0 ? N : 0); ++e) {
      if (ended[first / M * N + e] != 0) std::fill_n(state.begin() + e * (M / N) * P, (M / N) * P, 0.0f);
    }
    torch::Tensor action, log_prob;
    if (spec.discrete) {
      action = head.softmax(1).multinomial(1);
      log_prob = CategoricalLogProb(head, action.squeeze(1));
      View(batch->values<int64_t>("action"), rows, 1, torch::kInt64).narrow(0, first, count).copy_(action);
    } else {
      action = head + log_std.exp() * torch::randn_like(head);
      log_prob = GaussianLogProb(head, log_std, action);
      View(batch->values<float>("action"), rows, D, torch::kFloat32).narrow(0, first, count).copy_(action);
    }
    all_log_prob.narrow(0, first, count).copy_(log_prob.unsqueeze(1));
  }
}

// Environment e of N is truncated first after its (e / N)-th part of the limit, then every `limit` steps.
void EndEpisodes(int64_t limit, const EnvSpec& spec, Columns* batch) {
  if (limit == 0) return;
  const int64_t T = batch->steps(), N = batch->share_envs(), A = spec.num_agents;
  const int64_t O = spec.obs_size, G = spec.global_state_size;
  const absl::Span<const float> obs = batch->values<float>("obs"), state = batch->values<float>("state");
  const absl::Span<uint8_t> truncated = batch->values<uint8_t>("truncated"), ended = batch->values<uint8_t>("ended");
  for (int64_t t = 0; t < T; ++t) {
    for (int64_t e = 0; e < N; ++e) {
      if ((t + e * limit / N) % limit != limit - 1) continue;
      if (!ended.empty()) ended[t * N + e] = 1;
      if (G > 0) batch->Append("final_state", state.subspan((t * N + e) * G, G));
      for (int64_t column = e * A; column < (e + 1) * A; ++column) {
        const int64_t row = t * batch->columns() + column;
        truncated[row] = 1;
        batch->Append<int64_t>("final_index", {&row, 1});
        batch->Append("final_obs", obs.subspan(row * O, O));
      }
    }
  }
}

}  // namespace

absl::StatusOr<std::unique_ptr<Columns>> MakeSyntheticBatch(const v1::RunConfig& config, const EnvSpec& spec,
                                                            const v1::PolicySnapshot& snapshot) {
  const auto policy = ReadSnapshot(snapshot, MakePolicySpec(config.model(), spec));
  if (!policy.ok()) return policy.status();
  FragmentShape shape;
  shape.group_envs = config.rollout().num_envs();
  shape.steps = config.rollout().steps_per_iteration() / shape.group_envs;
  shape.spec = MakeEnvSpecInfo(spec);
  shape.policy_state_size = (*policy)->spec().state_size();
  shape.algorithm_fields = AlgorithmFieldNames();  // Act and the bare loop use them, whatever the algorithm.
  auto batch = std::make_unique<Columns>(MakeSchema(shape), /*slots=*/1, /*segments=*/1);
  try {
    const torch::NoGradGuard no_grad;
    torch::manual_seed(config.seed());
    for (const char* name : {"obs", "state", "reward"}) {
      const absl::Span<float> values = batch->values<float>(name);
      View(values, static_cast<int64_t>(values.size()), 1, torch::kFloat32).normal_();
    }
    const absl::Span<uint8_t> active = batch->values<uint8_t>("active");
    std::fill(active.begin(), active.end(), uint8_t{1});
    const int64_t limit = config.env().max_episode_steps();
    EndEpisodes(limit > 0 ? limit : spec.max_episode_steps, spec, batch.get());
    Act(**policy, spec, batch.get());
  } catch (const std::exception& error) {
    return absl::InternalError(absl::StrCat("Torch failed while making a batch: ", error.what()));
  }
  return batch;
}

}  // namespace skein
