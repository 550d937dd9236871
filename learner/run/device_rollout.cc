// SPDX-License-Identifier: Apache-2.0
#include "learner/run/device_rollout.h"

#include <torch/types.h>
#include <torch/utils.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/time/time.h"
#include "base/process/clock.h"
#include "env/env_config.h"
#include "env/uav/tensor_form.h"
#include "learner/network/distribution.h"

namespace skein {
namespace {

// Next episodes' maps made in each step: one for so many worlds, but at least kLeastMaps.
constexpr int64_t kWorldsForAMap = 32;
constexpr int64_t kLeastMaps = 64;
// Blocks of four random words drawn at once, at most (but one step's).
constexpr int64_t kNoiseBlocks = int64_t{1} << 22;
constexpr double kTwoPi = 6.283185307179586;

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
                                                                   uint32_t num_envs, torch::Device device) {
  const auto task = FindTensorForm(config.env().id());
  if (!task.ok()) return task.status();
  TensorWorld::Options options;
  options.task = *task;
  options.uav = MakeEnvOptions(config.env()).uav;
  options.num_envs = num_envs;
  options.seed = config.seed();
  options.first_env = first_env;
  options.max_episode_steps = static_cast<int>(config.env().max_episode_steps());
  options.device = device;
  options.prepared_per_step = std::max<int64_t>(kLeastMaps, num_envs / kWorldsForAMap);
  auto world = TensorWorld::Make(options);
  if (!world.ok()) return world.status();
  const int64_t steps = config.rollout().steps_per_iteration() / config.rollout().num_envs();
  return std::unique_ptr<DeviceRollout>(new DeviceRollout(config, *std::move(world), first_env, steps, device));
}

DeviceRollout::DeviceRollout(const v1::RunConfig& config, std::unique_ptr<TensorWorld> world, uint32_t first_env,
                             int64_t steps, torch::Device device)
    : seed_(config.seed()),
      first_env_(first_env),
      E_(world->num_envs()),
      A_(world->spec().num_agents),
      T_(steps),
      words_(NoiseWords(world->spec())),
      central_(config.model().central_critic() && !config.model().shared_trunk() &&
               world->spec().global_state_size > 0),
      device_(device),
      world_(std::move(world)),
      philox_(seed_, RandomPurpose::kAction, device) {
  const EnvSpec& spec = world_->spec();
  const int64_t M = E_ * A_, P = static_cast<int64_t>(spec.episode_metrics.size());
  const auto make = [device](std::vector<int64_t> shape, torch::ScalarType type) {
    return torch::zeros(shape, torch::TensorOptions(type).device(device));
  };
  env_index_ = torch::arange(E_, torch::TensorOptions(torch::kInt64).device(device)) + int64_t{first_env};
  batch_["obs"] = make({T_ + 1, M, spec.obs_size}, torch::kFloat32);
  if (central_) batch_["state"] = make({T_ + 1, E_, spec.global_state_size}, torch::kFloat32);
  batch_["action"] = spec.discrete ? make({T_, M}, torch::kInt64) : make({T_, M, spec.action_size}, torch::kFloat32);
  for (torch::Tensor* tensor : {&batch_["log_prob"], &batch_["reward"], &batch_["final_value"]}) {
    *tensor = make({T_, M}, torch::kFloat32);
  }
  for (torch::Tensor* tensor : {&batch_["terminated"], &batch_["truncated"], &batch_["active"]}) {
    *tensor = make({T_, M}, torch::kBool);
  }
  episodes_ = {make({T_, E_}, torch::kBool),       make({T_, E_}, torch::kFloat64), make({T_, E_}, torch::kInt64),
               make({T_, E_, P}, torch::kFloat32), make({T_, E_}, torch::kInt64),   make({T_, E_, A_}, torch::kUInt8),
               make({T_, E_, A_}, torch::kFloat32)};
}

std::vector<DeviceRollout::Candidates> DeviceRollout::FindCandidates() const {
  const int64_t limit = world_->spec().max_episode_steps;
  std::vector<std::vector<int64_t>> at(T_);
  const std::vector<int64_t> steps = world_->Steps();
  for (int64_t e = 0; e < E_; ++e) {
    if (const int64_t left = limit - 1 - steps[e]; left < T_) at[left].push_back(e);
  }
  std::vector<Candidates> candidates(T_);
  for (int64_t t = 0; t < T_; ++t) {
    candidates[t].count = static_cast<int64_t>(at[t].size());
    // After `limit` steps it may be any that began again on the way.
    candidates[t].all = t >= limit || 2 * candidates[t].count > E_;
    if (candidates[t].all || at[t].empty()) continue;
    candidates[t].worlds = torch::tensor(at[t], torch::kInt64).to(device_);
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
  const EnvSpec& spec = world_->spec();
  if (spec.discrete) {
    // Inverse of the cumulative distribution; what rounding leaves over goes to the last choice.
    const torch::Tensor log_prob = head.log_softmax(1);
    const torch::Tensor below = log_prob.exp().cumsum(1) <= noise.unsqueeze(1);
    const torch::Tensor choice = below.sum(1).clamp_max_(spec.action_size - 1);
    batch_["action"][t].copy_(choice);
    batch_["log_prob"][t].copy_(log_prob.gather(1, choice.unsqueeze(1)).squeeze(1));
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
  batch_["log_prob"][t].copy_(GaussianLogProb(head, log_std, action));
}

void DeviceRollout::Observe(int64_t t) {
  world_->Observe(batch_["obs"][t].view({E_, A_, -1}));
  if (central_) world_->GlobalState(batch_["state"][t]);
}

void DeviceRollout::JudgeEnds(const Judge& judge, const Candidates& candidates, int64_t t) {
  if (!candidates.all && candidates.count == 0) return;
  const EnvSpec& spec = world_->spec();
  const torch::Tensor worlds = candidates.all ? torch::Tensor() : candidates.worlds;
  const int64_t count = candidates.all ? E_ : candidates.count, G = spec.global_state_size;
  const auto floats = batch_["obs"].options();
  torch::Tensor obs = torch::empty({count, A_, spec.obs_size}, floats);
  world_->Observe(obs, worlds);
  torch::Tensor input = judge.obs_scale.Apply(obs.view({count * A_, spec.obs_size}));
  if (central_) {
    torch::Tensor state = torch::empty({count, G}, floats);
    world_->GlobalState(state, worlds);
    state = judge.state_scale.Apply(state).unsqueeze(1).expand({count, A_, G}).reshape({count * A_, G});
    input = torch::cat({input, state}, 1);
  }
  const torch::Tensor value = judge.network->Value(input).view({count, A_});
  torch::Tensor row = batch_["final_value"][t].view({E_, A_});
  if (candidates.all) {
    row.copy_(value);
  } else {
    row.index_copy_(0, worlds, value);
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
  lap(&build);
  Observe(0);
  lap(&env_step);
  for (int64_t t = 0; t < T_; ++t) {
    if (t % at_once == 0) noise = Noise(iteration, t, std::min(at_once, T_ - t));
    Sample(t, judge.network->PolicyHead(judge.obs_scale.Apply(batch_["obs"][t])), log_std, noise[t % at_once]);
    lap(&inference);
    const TensorWorld::StepResult result = world_->Advance(batch_["action"][t]);
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
    episodes_.episode[t].copy_(result.episode);
    episodes_.status[t].copy_(result.status);
    episodes_.flown[t].copy_(result.flown);
    lap(&build);
    JudgeEnds(judge, candidates[t], t);
    lap(&inference);
    world_->BeginEpisodes();
    Observe(t + 1);
    lap(&env_step);
  }
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
  const std::vector<std::string>& names = world_->spec().episode_metrics;
  const auto name = std::find(names.begin(), names.end(), "path_ratio");
  if (name == names.end()) return;
  const int64_t count = which.numel(), shown = std::min(count, kPathRatios);
  const auto last = [&](const torch::Tensor& all) {
    return all.flatten(0, 1).index_select(0, which.narrow(0, count - shown, shown));
  };
  const std::vector<int64_t> index = ToVector<int64_t>(which.narrow(0, count - shown, shown));
  const std::vector<int64_t> episode = ToVector<int64_t>(last(episodes_.episode));
  const std::vector<uint8_t> status = ToVector<uint8_t>(last(episodes_.status));
  const std::vector<float> flown = ToVector<float>(last(episodes_.flown));
  float* row = iteration->episode_metrics.data() + (count - shown) * static_cast<int64_t>(names.size());
  for (int64_t i = 0; i < shown; ++i, row += names.size()) {
    row[name - names.begin()] =
        world_->PathRatio(first_env_ + static_cast<uint64_t>(index[i] % E_), static_cast<uint64_t>(episode[i]),
                          status.data() + i * A_, flown.data() + i * A_);
  }
}

DeviceRollout::Iteration DeviceRollout::Collect(const Judge& judge, uint64_t iteration) {
  const torch::NoGradGuard no_grad;
  const Judge there{judge.network, On(device_, judge.obs_scale),
                    central_ ? On(device_, judge.state_scale) : judge.state_scale};
  Iteration collected;
  const int64_t prepared = world_->prepared_per_step();
  TensorWorld::Snapshot before;
  if (prepared < E_) before = world_->Save();
  Roll(there, iteration, &collected.stage_seconds);
  const absl::Duration rolled = MonotonicNow();
  if (prepared < E_ && world_->missed()) {
    // Maps were too few: everything again with all of them, and with more from now on.
    world_->Restore(before);
    world_->PrepareAtOnce(E_);
    Roll(there, iteration, &collected.stage_seconds);
    world_->PrepareAtOnce(2 * prepared);
  }
  collected.batch = batch_;
  collected.samples = batch_["active"].sum().item<int64_t>();
  ReadEpisodes(&collected);
  collected.stage_seconds.set_wait(absl::ToDoubleSeconds(MonotonicNow() - rolled));
  return collected;
}

}  // namespace skein
