// SPDX-License-Identifier: Apache-2.0
#include "learner/run/direction_rollout.h"

#include <ATen/Parallel.h>
#include <torch/types.h>
#include <torch/utils.h>

#include <algorithm>
#include <string>
#include <utility>

#include "absl/time/time.h"
#include "base/config/direction_rules.h"
#include "base/process/clock.h"
#include "env/env_config.h"
#include "env/registry.h"
#include "policy/direction.h"

namespace skein {
namespace {

// Steps between two looks at whether all episodes have ended, on a device that would have to be waited for.
constexpr int64_t kStepsUnseen = 16;

void ActivateInPlace(ActivationKind kind, torch::Tensor* x) {
  switch (kind) {
    case ActivationKind::kTanh:
      x->tanh_();
      break;
    case ActivationKind::kElu:
      torch::elu_(*x);
      break;
    case ActivationKind::kRelu:
      x->relu_();
      break;
  }
}

// OpenBLAS takes its buffers with the first products of a process, and waits for ever if there is no memory for them.
// Products that are large enough for all its threads take them while there is.
void TakeBuffersOfProducts() {
  const auto doubles = torch::TensorOptions(torch::kFloat64);
  torch::bmm(torch::ones({2, 256, 64}, doubles), torch::ones({2, 64, 256}, doubles));
}

}  // namespace

absl::StatusOr<std::unique_ptr<DirectionRollout>> DirectionRollout::Make(const v1::RunConfig& config,
                                                                         torch::Device device) {
  auto spec = FindEnvSpec(config.env().id(), MakeEnvOptions(config.env()));
  if (!spec.ok()) return spec.status();
  if (absl::Status s = CheckTensorForm(config.env().id()); !s.ok()) return s;
  const uint32_t own = config.env().max_episode_steps();
  const auto most = MostEpisodeSteps(config, own > 0 ? own : static_cast<uint32_t>(spec->max_episode_steps));
  if (!most.ok()) return most.status();
  if (device.is_cpu()) TakeBuffersOfProducts();
  return std::unique_ptr<DirectionRollout>(new DirectionRollout(config, *spec, *most, device));
}

DirectionRollout::DirectionRollout(const v1::RunConfig& config, const EnvSpec& spec, uint32_t most_steps,
                                   torch::Device device)
    : config_(config),
      spec_(spec),
      most_steps_(most_steps),
      dirs_(config.directions().num_dirs()),
      worlds_(config.directions().num_envs()),
      activation_(MakePolicySpec(config.model(), spec).activation),
      device_(device),
      memory_(config.directions().dir_chunk(),
              {"direction", "directions.dir_chunk", "lower directions.num_envs, or take a smaller network"}),
      make_recorder_([device] { return device.is_cuda() ? MakeCudaRecorder(device) : nullptr; }),
      moments_(spec.obs_size, device) {}

absl::StatusOr<TensorEnv*> DirectionRollout::EnvsOf(int64_t first, int64_t count) {
  if (env_ != nullptr && env_first_ == first && env_count_ == count) return env_.get();
  // Their memory first.
  step_.reset();
  episodes_ = {};
  env_.reset();
  TensorEnv::Options options;
  options.worlds = 2 * count * worlds_;
  options.copies = 2;
  options.seed = config_.seed();
  options.first_env = static_cast<uint64_t>(first * worlds_);
  options.max_episode_steps = static_cast<int>(config_.env().max_episode_steps());
  options.device = device_;
  auto env = MakeTensorEnv(config_.env().id(), options, MakeEnvOptions(config_.env()));
  if (!env.ok()) return env.status();
  env_ = *std::move(env);
  env_first_ = first;
  env_count_ = count;
  // A part of all directions has its environments for one use, which a recording is not worth.
  std::unique_ptr<Recorder> recorder = count == dirs_ ? make_recorder_() : nullptr;
  step_ = std::make_unique<RecordedStep>(
      std::move(recorder), [this] { Step(); }, [this] { return Tensors(); });
  return env_.get();
}

std::vector<DirectionRollout::Layer> DirectionRollout::Perturb(const ActorCritic& network, uint64_t iteration,
                                                               double noise_std, int64_t first, int64_t count) const {
  const PolicySpec& spec = network.options();
  const std::vector<size_t> searched = SearchedParameters(spec);
  std::vector<std::vector<float>> base;
  std::vector<torch::Tensor> perturbed;  // [2 C, ...], on the CPU.
  for (const auto& [name, parameter] : network.PolicyParameters()) {
    if (name == "log_std") continue;
    const float* const values = parameter.data_ptr<float>();
    base.emplace_back(values, values + parameter.numel());
    std::vector<int64_t> shape = parameter.sizes().vec();
    shape.insert(shape.begin(), 2 * count);
    perturbed.push_back(torch::empty(shape, torch::kFloat32));
  }
  at::parallel_for(0, 2 * count, 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const Direction direction{config_.seed(), iteration, static_cast<uint64_t>(first + i % count)};
      std::vector<std::vector<float>> moved = base;
      MoveAlong(direction, i < count ? noise_std : -noise_std, searched, absl::MakeSpan(moved));
      for (size_t p = 0; p < moved.size(); ++p) {
        std::copy(moved[p].begin(), moved[p].end(),
                  perturbed[p].data_ptr<float>() + i * static_cast<int64_t>(moved[p].size()));
      }
    }
  });
  std::vector<Layer> layers;
  for (size_t p = 0; p + 1 < perturbed.size(); p += 2) {
    layers.push_back(
        {MakeExactRows(perturbed[p].to(device_)), perturbed[p + 1].to(device_).to(torch::kFloat64).unsqueeze(1)});
  }
  return layers;
}

torch::Tensor DirectionRollout::Act() const {
  const int64_t policies = 2 * env_count_;
  torch::Tensor x = episodes_.scale.Apply(episodes_.obs).view({policies, -1, spec_.obs_size});
  for (size_t i = 0; i < episodes_.layers.size(); ++i) {
    const Layer& layer = episodes_.layers[i];
    x = MultiplyExactly(MakeExactRows(x), layer.weight).add_(layer.bias).to(torch::kFloat32);
    if (i + 1 < episodes_.layers.size()) ActivateInPlace(activation_, &x);
  }
  const int64_t envs = env_->worlds(), agents = spec_.num_agents;
  return spec_.discrete ? x.argmax(-1).view({envs, agents}) : x.view({envs, agents, spec_.action_size});
}

void DirectionRollout::Step() {
  const auto lap = [this](absl::Duration* stage) {
    const absl::Duration now = MonotonicNow();
    *stage += now - std::exchange(step_seconds_.last, now);
  };
  Episodes& episodes = episodes_;
  step_seconds_.last = MonotonicNow();
  env_->Observe(episodes.obs);
  lap(&step_seconds_.env_step);
  const torch::Tensor action = Act();
  lap(&step_seconds_.inference);
  const TensorEnv::StepResult result = env_->Advance(action);
  lap(&step_seconds_.env_step);
  const torch::Tensor counted = result.active.logical_and(episodes.going_on.unsqueeze(1));
  episodes.samples += counted.sum(1);
  if (episodes.moments) {
    episodes.moments->Add(episodes.obs.view({-1, spec_.obs_size}), counted.view(-1));
  }
  episodes.episode_return = torch::where(episodes.going_on, result.episode_return, episodes.episode_return);
  episodes.length += episodes.going_on;
  episodes.going_on = episodes.going_on.logical_and(result.ended.logical_not());
  lap(&step_seconds_.build);
}

std::vector<torch::Tensor*> DirectionRollout::Tensors() {
  std::vector<torch::Tensor*> tensors = env_->Tensors();
  Episodes& episodes = episodes_;
  if (episodes.moments) {
    const std::vector<torch::Tensor*> sums = episodes.moments->Tensors();
    tensors.insert(tensors.end(), sums.begin(), sums.end());
  }
  for (Layer& layer : episodes.layers) {
    tensors.insert(tensors.end(), {&layer.weight.whole, &layer.weight.unit, &layer.bias});
  }
  tensors.insert(tensors.end(), {&episodes.scale.mean, &episodes.scale.inv_std, &episodes.obs, &episodes.going_on,
                                 &episodes.episode_return, &episodes.length, &episodes.samples});
  return tensors;
}

absl::Status DirectionRollout::Play(const ActorCritic& network, const ObsScale& scale, uint64_t iteration,
                                    const DirectionSettings& settings, int64_t first, int64_t count,
                                    v1::StageSeconds* seconds) {
  const absl::Duration begin = MonotonicNow();
  const auto env = EnvsOf(first, count);
  if (!env.ok()) return env.status();
  const int64_t envs = (*env)->worlds();
  const auto on = [this](torch::ScalarType type) { return torch::TensorOptions(type).device(device_); };
  if (!episodes_.obs.defined()) {
    episodes_.obs = torch::empty({envs, spec_.num_agents, spec_.obs_size}, on(torch::kFloat32));
  }
  if (!step_->recorded()) episodes_.layers.clear();  // Their memory first, too.
  episodes_.layers = Perturb(network, iteration, settings.noise_std, first, count);
  episodes_.scale = {scale.mean.clone(), scale.inv_std.clone()};
  episodes_.going_on = torch::ones({envs}, on(torch::kBool));
  episodes_.episode_return = torch::zeros({envs}, on(torch::kFloat64));
  episodes_.length = torch::zeros({envs}, on(torch::kInt64));
  episodes_.samples = torch::zeros({envs}, on(torch::kInt64));
  if (config_.model().normalize_observations()) {
    episodes_.moments = std::make_unique<TensorMoments>(spec_.obs_size, device_, 2 * count);
  }
  step_seconds_ = {};
  step_seconds_.inference = MonotonicNow() - begin;
  absl::Duration last = MonotonicNow();
  const auto lap = [&last](absl::Duration* stage) {
    const absl::Duration now = MonotonicNow();
    *stage += now - std::exchange(last, now);
  };
  (*env)->BeginAll(static_cast<int64_t>(iteration));
  lap(&step_seconds_.env_step);
  const int64_t steps_of_episode = settings.EpisodeSteps(most_steps_);
  for (int64_t t = 1; t <= steps_of_episode; ++t) {
    step_->Run();
    if (!device_.is_cpu() && t % kStepsUnseen != 0) continue;
    last = MonotonicNow();
    const bool over = !episodes_.going_on.any().item<bool>();
    if (device_.is_cpu()) lap(&step_seconds_.build);
    if (over) break;
  }
  TakeEpisodes(first, count);
  const StepSeconds& steps = step_seconds_;
  const auto add = [](double* sum, absl::Duration duration) { *sum += absl::ToDoubleSeconds(duration); };
  double inference = seconds->inference(), env_step = seconds->env_step(), build = seconds->build(),
         wait = seconds->wait();
  add(&inference, steps.inference);
  add(&env_step, steps.env_step);
  add(&build, steps.build);
  add(&wait, MonotonicNow() - begin - steps.inference - steps.env_step - steps.build);
  seconds->set_inference(inference);
  seconds->set_env_step(env_step);
  seconds->set_build(build);
  seconds->set_wait(wait);
  return absl::OkStatus();
}

void DirectionRollout::TakeEpisodes(int64_t first, int64_t count) {
  const torch::Tensor returns = episodes_.episode_return.cpu(), lengths = episodes_.length.cpu();
  const int64_t half = count * worlds_, to = first * worlds_;
  for (const int64_t sign : {0, 1}) {
    Sign& own = sign == 0 ? plus_ : minus_;
    std::copy_n(returns.data_ptr<double>() + sign * half, half, own.episode_return.begin() + to);
    std::copy_n(lengths.data_ptr<int64_t>() + sign * half, half, own.episode_length.begin() + to);
  }
  const torch::Tensor samples = episodes_.samples.cpu().view({2, count, worlds_}).sum(2);
  samples_ += samples.sum().item<int64_t>();
  if (!episodes_.moments) return;
  const torch::Tensor finite = returns.view({2, count, worlds_}).sum(2).isfinite().all(0);  // [count]
  counted_samples_ += samples.sum(0).masked_select(finite).sum().item<int64_t>();
  moments_.AddGroups(*episodes_.moments, finite.repeat({2}).to(device_));
}

DirectionRollout::Iteration DirectionRollout::Finish(v1::StageSeconds seconds) const {
  Iteration iteration;
  for (const auto& [sign, name] : {std::pair(&plus_, "plus"), std::pair(&minus_, "minus")}) {
    torch::Tensor total = torch::zeros({dirs_}, torch::kFloat64), steps = torch::zeros({dirs_}, torch::kInt64);
    for (int64_t e = 0; e < dirs_ * worlds_; ++e) {
      total.data_ptr<double>()[e / worlds_] += sign->episode_return[e];
      steps.data_ptr<int64_t>()[e / worlds_] += sign->episode_length[e];
      iteration.env_steps += static_cast<uint64_t>(sign->episode_length[e]);
    }
    iteration.batch[std::string("return_") + name] = total;
    iteration.batch[std::string("steps_") + name] = steps;
    iteration.episode_return.insert(iteration.episode_return.end(), sign->episode_return.begin(),
                                    sign->episode_return.end());
    iteration.episode_length.insert(iteration.episode_length.end(), sign->episode_length.begin(),
                                    sign->episode_length.end());
  }
  iteration.samples = samples_;
  if (config_.model().normalize_observations()) {
    iteration.batch["obs_sum"] = moments_.SumWords();
    iteration.batch["obs_square_sum"] = moments_.SquareSumWords();
    iteration.batch["obs_count"] = torch::scalar_tensor(counted_samples_, torch::kInt64);
  }
  iteration.stage_seconds = std::move(seconds);
  return iteration;
}

absl::StatusOr<DirectionRollout::Iteration> DirectionRollout::Collect(const ActorCritic& network,
                                                                      const ObsScale& obs_scale, uint64_t iteration,
                                                                      const DirectionSettings& settings) {
  const torch::NoGradGuard no_grad;
  const ObsScale scale{obs_scale.mean.to(device_), obs_scale.inv_std.to(device_)};
  v1::StageSeconds seconds;
  absl::Status played;
  MemoryLimit::Work work;
  work.begin = [&] {
    const auto episodes = static_cast<size_t>(dirs_ * worlds_);
    for (Sign* sign : {&plus_, &minus_}) {
      sign->episode_return.assign(episodes, 0);
      sign->episode_length.assign(episodes, 0);
    }
    moments_.Clear();
    samples_ = counted_samples_ = 0;
    return absl::OkStatus();
  };
  work.piece = [&](int64_t first, int64_t rows, bool) {
    if (played.ok()) played = Play(network, scale, iteration, settings, first, rows, &seconds);
  };
  const absl::Status fits = memory_.Run(dirs_, work);
  if (!played.ok()) return played;
  if (!fits.ok()) return fits;
  return Finish(std::move(seconds));
}

}  // namespace skein
