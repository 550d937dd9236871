// SPDX-License-Identifier: Apache-2.0
#include "learner/run/device_rollout.h"

#include <torch/types.h>
#include <torch/utils.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "base/config/algorithm_rules.h"
#include "base/process/clock.h"
#include "env/env_config.h"
#include "env/tensor/tensor_env.h"
#include "learner/network/distribution.h"
#include "learner/network/memory_cell.h"
#include "learner/run/recorded_env.h"
#include "policy/policy_spec.h"

namespace skein {
namespace {

// Blocks of four random words drawn at once, at most (but one step's).
constexpr int64_t kNoiseBlocks = int64_t{1} << 22;
constexpr double kTwoPi = 6.283185307179586;
// The fields of AlgorithmFieldNames that Sample writes, float32 [T, M] each.
constexpr absl::string_view kSampledFields[] = {"log_prob"};

// Words of noise that one agent's action takes: one for a choice, one for each real, in pairs.
int64_t NoiseWords(const EnvSpec& spec) { return spec.discrete ? 1 : (spec.action_size + 1) / 2 * 2; }

ObsScale On(torch::Device device, const ObsScale& scale) { return {scale.mean.to(device), scale.inv_std.to(device)}; }

template <typename Value>
std::vector<Value> ToVector(const torch::Tensor& tensor) {
  const torch::Tensor values = tensor.cpu().contiguous();
  return {values.data_ptr<Value>(), values.data_ptr<Value>() + values.numel()};
}

}  // namespace

absl::StatusOr<std::unique_ptr<DeviceRollout>> DeviceRollout::Make(const v1::RunConfig& config, uint32_t first_env,
                                                                   uint32_t share_envs, torch::Device device) {
  for (const std::string& field : AlgorithmFields(config)) {
    if (std::count(std::begin(kSampledFields), std::end(kSampledFields), field) == 0) {
      return absl::UnimplementedError(
          absl::StrCat("sync.mode on_device makes no field ", field, ", which this algorithm reads"));
    }
  }
  TensorEnv::Options options;
  options.worlds = share_envs;
  options.seed = config.seed();
  options.first_env = first_env;
  options.max_episode_steps = static_cast<int>(config.env().max_episode_steps());
  options.device = device;
  auto env = MakeTensorEnv(config.env().id(), options, MakeEnvOptions(config.env()));
  if (!env.ok()) return env.status();
  const int64_t steps = config.rollout().steps_per_iteration() / config.rollout().num_envs();
  return std::unique_ptr<DeviceRollout>(
      new DeviceRollout(config, RecordOnGpu(*std::move(env), device), first_env, steps, device));
}

DeviceRollout::DeviceRollout(const v1::RunConfig& config, std::unique_ptr<TensorEnv> env, uint32_t first_env,
                             int64_t steps, torch::Device device)
    : seed_(config.seed()),
      first_env_(first_env),
      E_(env->worlds()),
      A_(env->spec().num_agents),
      T_(steps),
      words_(NoiseWords(env->spec())),
      central_(config.model().central_critic() && !config.model().shared_trunk() && env->spec().global_state_size > 0),
      device_(device),
      env_(std::move(env)),
      philox_(seed_, RandomPurpose::kAction, device),
      state_size_(MakePolicySpec(config.model(), env_->spec()).state_size()) {
  const EnvSpec& spec = env_->spec();
  const int64_t M = E_ * A_, P = static_cast<int64_t>(spec.episode_metrics.size());
  const auto make = [device](std::vector<int64_t> shape, torch::ScalarType type) {
    return torch::zeros(shape, torch::TensorOptions(type).device(device));
  };
  env_index_ = torch::arange(E_, torch::TensorOptions(torch::kInt64).device(device)) + int64_t{first_env};
  batch_["obs"] = make({T_ + 1, M, spec.obs_size}, torch::kFloat32);
  if (central_) batch_["state"] = make({T_ + 1, E_, spec.global_state_size}, torch::kFloat32);
  batch_["action"] = spec.discrete ? make({T_, M}, torch::kInt64) : make({T_, M, spec.action_size}, torch::kFloat32);
  for (torch::Tensor* tensor : {&batch_["reward"], &batch_["final_value"]}) *tensor = make({T_, M}, torch::kFloat32);
  for (const std::string& field : AlgorithmFields(config)) batch_[field] = make({T_, M}, torch::kFloat32);
  for (torch::Tensor* tensor : {&batch_["terminated"], &batch_["truncated"], &batch_["active"]}) {
    *tensor = make({T_, M}, torch::kBool);
  }
  episodes_ = {make({T_, E_}, torch::kBool),
               make({T_, E_}, torch::kFloat64),
               make({T_, E_}, torch::kInt64),
               make({T_, E_, P}, torch::kFloat32),
               {}};
  if (state_size_ == 0) return;
  policy_state_ = make({M, state_size_}, torch::kFloat32);
  batch_["ended"] = episodes_.ended;
}

void DeviceRollout::Begin() {
  env_->ResetAll();
  if (state_size_ > 0) policy_state_ = torch::zeros_like(policy_state_);
}

absl::Status DeviceRollout::Begin(const torch::Tensor& state, const torch::Tensor& policy_state) {
  if (policy_state.defined() && policy_state.sizes() != torch::IntArrayRef({E_, A_, state_size_})) {
    return absl::InvalidArgumentError("the policy's states have another shape than this run's");
  }
  if (state_size_ > 0) {
    policy_state_ = policy_state.defined() ? policy_state.to(device_).reshape({E_ * A_, state_size_})
                                           : torch::zeros_like(policy_state_);
  }
  return env_->LoadState(state);
}

torch::Tensor DeviceRollout::SavePolicyState() const {
  return state_size_ == 0 ? torch::Tensor() : policy_state_.view({E_, A_, state_size_}).cpu();
}

std::vector<DeviceRollout::Candidates> DeviceRollout::FindCandidates() const {
  const int64_t limit = env_->spec().max_episode_steps;
  std::vector<Candidates> candidates(T_);
  if (limit == 0) return candidates;
  std::vector<std::vector<int64_t>> at(T_);
  const std::vector<int64_t> steps = env_->Steps();
  for (int64_t e = 0; e < E_; ++e) {
    if (const int64_t left = limit - 1 - steps[e]; left < T_) at[left].push_back(e);
  }
  for (int64_t t = 0; t < T_; ++t) {
    candidates[t].count = static_cast<int64_t>(at[t].size());
    // After `limit` steps it may be any that began again on the way.
    candidates[t].all = t >= limit || 2 * candidates[t].count > E_;
    if (candidates[t].all || at[t].empty()) continue;
    candidates[t].envs = torch::tensor(at[t], torch::kInt64).to(device_);
  }
  return candidates;
}

torch::Tensor DeviceRollout::Noise(uint64_t iteration, int64_t first, int64_t steps) const {
  const int64_t blocks = (A_ * words_ + 3) / 4;  // Of a step.
  const torch::Tensor stream = torch::full_like(env_index_, static_cast<int64_t>(iteration));
  const torch::Tensor words = philox_.Words(env_index_, stream, first * blocks, steps * blocks);
  return words.view({E_, steps, 4 * blocks})
      .narrow(2, 0, A_ * words_)
      .permute({1, 0, 2})
      .to(torch::kFloat64)
      .add_(0.5)
      .mul_(0x1p-32)
      .to(torch::kFloat32)
      .reshape({steps, E_ * A_ * words_});
}

void DeviceRollout::Sample(int64_t t, const torch::Tensor& head, const torch::Tensor& log_std,
                           const torch::Tensor& noise) {
  const EnvSpec& spec = env_->spec();
  if (spec.discrete) {
    // Inverse of the cumulative distribution; what rounding leaves over goes to the last choice.
    const torch::Tensor log_prob = head.log_softmax(1);
    // Choices first: GPUs are slow at sums along short rows.
    const torch::Tensor below = log_prob.exp().t().contiguous().cumsum(0) <= noise;
    const torch::Tensor choice = below.sum(0).clamp_max_(spec.action_size - 1);
    batch_["action"][t].copy_(choice);
    if (batch_.has("log_prob")) batch_["log_prob"][t].copy_(log_prob.gather(1, choice.unsqueeze(1)).squeeze(1));
    return;
  }
  // Box-Muller: each pair of uniforms makes a pair of normals.
  const torch::Tensor pairs = noise.view({E_ * A_, words_ / 2, 2});
  const torch::Tensor radius = (pairs.select(2, 0).log() * -2).clamp_min_(0).sqrt_();
  const torch::Tensor angle = pairs.select(2, 1) * kTwoPi;
  const torch::Tensor normal = torch::stack({radius * angle.cos(), radius * angle.sin()}, 2)
                                   .view({E_ * A_, words_})
                                   .narrow(1, 0, spec.action_size);
  const torch::Tensor action = head + log_std.exp() * normal;
  batch_["action"][t].copy_(action);
  if (batch_.has("log_prob")) batch_["log_prob"][t].copy_(GaussianLogProb(head, log_std, action));
}

void DeviceRollout::Observe(int64_t t) {
  env_->Observe(batch_["obs"][t].view({E_, A_, -1}));
  if (central_) env_->GlobalState(batch_["state"][t]);
}

torch::Tensor DeviceRollout::Remember(const Judge& judge, int64_t t, Memories* memories) const {
  const torch::Tensor obs = judge.obs_scale.Apply(batch_["obs"][t]);
  if (!memories->policy.defined()) return obs;
  memories->policy = StepMemory(judge.network->memory(), obs, memories->policy);
  if (memories->critic.defined()) {
    torch::Tensor input = obs;
    if (central_) {
      const torch::Tensor state = judge.state_scale.Apply(batch_["state"][t]);
      input =
          torch::cat({obs, state.unsqueeze(1).expand({E_, A_, state.size(1)}).reshape({E_ * A_, state.size(1)})}, 1);
    }
    memories->critic = StepMemory(judge.network->critic_memory(), input, memories->critic);
  }
  return memories->policy.narrow(1, 0, judge.network->memory().size());
}

void DeviceRollout::JudgeEnds(const Judge& judge, const Candidates& candidates, const Memories& memories, int64_t t) {
  if (!candidates.all && candidates.count == 0) return;
  const EnvSpec& spec = env_->spec();
  const torch::Tensor envs = candidates.all ? torch::Tensor() : candidates.envs;
  const int64_t count = candidates.all ? E_ : candidates.count, G = spec.global_state_size;
  const auto floats = batch_["obs"].options();
  torch::Tensor obs = torch::empty({count, A_, spec.obs_size}, floats);
  env_->Observe(obs, envs);
  torch::Tensor input = judge.obs_scale.Apply(obs.view({count * A_, spec.obs_size}));
  const auto remember = [&](const MemoryCell& cell, const torch::Tensor& all) {
    const torch::Tensor before = all.view({E_, A_, state_size_});
    const torch::Tensor chosen = candidates.all ? before : before.index_select(0, envs);
    input = StepMemory(cell, input, chosen.reshape({count * A_, state_size_})).narrow(1, 0, cell.size());
  };
  if (memories.policy.defined() && !memories.critic.defined()) remember(judge.network->memory(), memories.policy);
  if (central_) {
    torch::Tensor state = torch::empty({count, G}, floats);
    env_->GlobalState(state, envs);
    state = judge.state_scale.Apply(state).unsqueeze(1).expand({count, A_, G}).reshape({count * A_, G});
    input = torch::cat({input, state}, 1);
  }
  if (memories.critic.defined()) remember(judge.network->critic_memory(), memories.critic);
  const torch::Tensor value = judge.network->Value(input).view({count, A_});
  torch::Tensor row = batch_["final_value"][t].view({E_, A_});
  if (candidates.all) {
    row.copy_(value);
  } else {
    row.index_copy_(0, envs, value);
  }
}

void DeviceRollout::KeepNotes(int64_t t, const std::vector<torch::Tensor>& notes) {
  for (size_t i = 0; i < notes.size(); ++i) {
    if (episodes_.notes.size() == i) {
      std::vector<int64_t> shape = notes[i].sizes().vec();
      shape.insert(shape.begin(), T_);
      episodes_.notes.push_back(torch::zeros(shape, notes[i].options()));
    }
    episodes_.notes[i][t].copy_(notes[i]);
  }
}

void DeviceRollout::Roll(const Judge& judge, uint64_t iteration, v1::StageSeconds* seconds) {
  absl::Duration env_step, inference, build, last = MonotonicNow();
  const auto lap = [&last](absl::Duration* stage) {
    const absl::Duration now = MonotonicNow();
    *stage += now - last;
    last = now;
  };
  const std::vector<Candidates> candidates = FindCandidates();
  const int64_t blocks = E_ * ((A_ * words_ + 3) / 4), at_once = std::max<int64_t>(1, kNoiseBlocks / blocks);
  const torch::Tensor log_std = judge.network->log_std();
  torch::Tensor noise;
  Memories memories{policy_state_, judge.network->critic_memory().exists() ? policy_state_ : torch::Tensor()};
  if (state_size_ > 0) batch_["first_policy_state"] = policy_state_;
  lap(&build);
  Observe(0);
  lap(&env_step);
  for (int64_t t = 0; t < T_; ++t) {
    if (t % at_once == 0) noise = Noise(iteration, t, std::min(at_once, T_ - t));
    Sample(t, judge.network->PolicyHead(Remember(judge, t, &memories)), log_std, noise[t % at_once]);
    lap(&inference);
    const TensorEnv::StepResult result = env_->Advance(batch_["action"][t]);
    lap(&env_step);
    const torch::Tensor cut =
        result.active.logical_and(result.agent_terminated.logical_not()).logical_and_(result.truncated.unsqueeze(1));
    batch_["reward"][t].copy_(result.reward.view(-1));
    batch_["terminated"][t].copy_(result.agent_terminated.view(-1));
    batch_["truncated"][t].copy_(cut.view(-1));
    batch_["active"][t].copy_(result.active.view(-1));
    episodes_.ended[t].copy_(result.ended);
    episodes_.episode_return[t].copy_(result.episode_return);
    episodes_.episode_length[t].copy_(result.episode_length);
    episodes_.metrics[t].copy_(result.episode_metrics);
    KeepNotes(t, result.notes);
    lap(&build);
    JudgeEnds(judge, candidates[t], memories, t);
    for (torch::Tensor* const memory : {&memories.policy, &memories.critic}) {
      if (!memory->defined()) continue;
      const torch::Tensor ended = result.ended.view({E_, 1}).expand({E_, A_}).reshape({E_ * A_, 1});
      *memory = memory->masked_fill(ended, 0);
    }
    lap(&inference);
    env_->BeginEpisodes();
    Observe(t + 1);
    lap(&env_step);
  }
  rolled_state_ = memories.policy;
  seconds->set_build(seconds->build() + absl::ToDoubleSeconds(build));
  seconds->set_inference(seconds->inference() + absl::ToDoubleSeconds(inference));
  seconds->set_env_step(seconds->env_step() + absl::ToDoubleSeconds(env_step));
}

void DeviceRollout::ReadEpisodes(Iteration* iteration) {
  const torch::Tensor which = episodes_.ended.view(-1).nonzero().view(-1);  // t * E + e
  const auto of = [&which](const torch::Tensor& all) { return all.flatten(0, 1).index_select(0, which); };
  iteration->episode_return = ToVector<double>(of(episodes_.episode_return));
  iteration->episode_length = ToVector<int64_t>(of(episodes_.episode_length));
  iteration->episode_metrics = ToVector<float>(of(episodes_.metrics));
  if (episodes_.notes.empty()) return;
  const int64_t count = which.numel(), shown = std::min(count, kFinished);
  const torch::Tensor last = which.narrow(0, count - shown, shown);
  const std::vector<int64_t> index = ToVector<int64_t>(last);
  std::vector<torch::Tensor> notes;
  for (const torch::Tensor& all : episodes_.notes) notes.push_back(all.flatten(0, 1).index_select(0, last).cpu());
  const auto P = static_cast<int64_t>(env_->spec().episode_metrics.size());
  float* row = iteration->episode_metrics.data() + (count - shown) * P;
  std::vector<torch::Tensor> notes_of_one(notes.size());
  for (int64_t i = 0; i < shown; ++i, row += P) {
    for (size_t n = 0; n < notes.size(); ++n) notes_of_one[n] = notes[n][i];
    env_->FinishMetrics(first_env_ + static_cast<uint64_t>(index[i] % E_), notes_of_one, row);
  }
}

DeviceRollout::Iteration DeviceRollout::Collect(const Judge& judge, uint64_t iteration) {
  const torch::NoGradGuard no_grad;
  const Judge there{judge.network, On(device_, judge.obs_scale),
                    central_ ? On(device_, judge.state_scale) : judge.state_scale};
  Iteration collected;
  env_->BeginRollout();
  Roll(there, iteration, &collected.stage_seconds);
  const absl::Duration rolled = MonotonicNow();
  while (!env_->EndRollout()) Roll(there, iteration, &collected.stage_seconds);
  policy_state_ = rolled_state_;
  collected.batch = batch_;
  collected.samples = batch_["active"].sum().item<int64_t>();
  ReadEpisodes(&collected);
  collected.stage_seconds.set_wait(absl::ToDoubleSeconds(MonotonicNow() - rolled));
  return collected;
}

}  // namespace skein
