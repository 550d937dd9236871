// SPDX-License-Identifier: Apache-2.0
#include "tests/export/reference_policy.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <iostream>

#include "base/config/config.h"
#include "base/number/philox.h"
#include "env/env_config.h"
#include "env/registry.h"
#include "env/vector_env.h"
#include "eval/checkpoint_policy.h"
#include "learner/run/checkpoint.h"
#include "tests/testing/make_tensor.h"

namespace skein {
namespace {

struct Case {
  const char* name;
  const char* yaml;
};

constexpr Case kCases[] = {
    {"tanh", "env: {id: HalfCheetah-v5}"},
    {"elu_transformed",
     "env: {id: HalfCheetah-v5, hide: velocities, transforms: [scale, stack: 3, hide: [0, 9-11], clip]}\n"
     "model: {activation: elu, hidden: [32, 16]}"},
    {"relu_choices", "env: {id: CartPole-v1}\nmodel: {activation: relu, shared_trunk: true, hidden: [24]}"},
    {"unclipped", "env: {id: HalfCheetah-v5, clip_actions_for_reward: false}\nmodel: {hidden: [8]}"},
    {"linear", "env: {id: HalfCheetah-v5}\nmodel: {policy: linear, normalize_observations: false}\nars: {}"},
    {"squashed", "env: {id: Pendulum-v1, transforms: [squash]}\nmodel: {policy: linear}\nars: {}"},
    {"gru", "env: {id: Pendulum-v1, hide: [2]}\nmodel: {memory: gru, memory_size: 20, hidden: [16]}"},
    {"lstm_choices",
     "env: {id: CartPole-v1, hide: velocities, transforms: [stack: 2]}\n"
     "model: {memory: lstm, memory_size: 12, hidden: [16]}"},
};

template <typename Value>
Value Must(absl::StatusOr<Value> value) {
  if (!value.ok()) {
    std::cerr << value.status() << std::endl;
    std::abort();
  }
  return *std::move(value);
}

// As large as those that training makes: outputs of a hidden layer are about as large as its inputs, actions smaller.
void AddParameters(const PolicySpec& spec, std::vector<v1::Tensor>* model) {
  for (const ParameterSpec& parameter : PolicyParameters(spec)) {
    RandomStream random(1, RandomPurpose::kInit, model->size(), 0);
    int64_t size = 1;
    for (const int64_t extent : parameter.shape) size *= extent;
    const double scale = parameter.name == "policy.head.weight" ? 0.3 : 1;
    const double deviation = parameter.shape.size() < 2 ? 0.3 : scale / std::sqrt(double(parameter.shape[1]));
    std::vector<float> values;
    for (int64_t i = 0; i < size; ++i) values.push_back(static_cast<float>(deviation * random.Normal()));
    model->push_back(MakeTensor(parameter.name, v1::DATA_TYPE_FLOAT32, parameter.shape, values));
  }
}

void AddNormalizer(int64_t size, std::vector<v1::Tensor>* model) {
  RandomStream random(2, RandomPurpose::kInit, 0, 0);
  std::vector<double> mean, variance;
  for (int64_t i = 0; i < size; ++i) {
    mean.push_back(random.Normal());
    variance.push_back(random.Uniform(0.2, 3));
  }
  model->push_back(MakeTensor("obs_normalizer.mean", v1::DATA_TYPE_FLOAT64, {size}, mean));
  model->push_back(MakeTensor("obs_normalizer.variance", v1::DATA_TYPE_FLOAT64, {size}, variance));
}

void WriteCheckpoint(const v1::RunConfig& config, const EnvSpec& spec, const std::string& folder) {
  Checkpoint checkpoint;
  checkpoint.env_steps = 4096;
  checkpoint.iteration = 3;
  checkpoint.env_id = config.env().id();
  checkpoint.config_yaml = ToYaml(config);
  AddParameters(MakePolicySpec(config.model(), spec), &checkpoint.model);
  if (config.model().normalize_observations()) AddNormalizer(spec.obs_size, &checkpoint.model);
  std::filesystem::create_directories(folder);
  Must(SaveCheckpoint(folder + "/checkpoints", checkpoint, 1));
}

// An environment with the spec of another one, whose observations are random and whose episodes end at random. Notes
// what it shows in the first observations of episodes and after steps that do not end one, and the actions it gets.
class ScriptedEnv final : public Env {
 public:
  ScriptedEnv(EnvSpec spec, ReferencePolicy* log)
      : spec_(std::move(spec)), log_(log), random_(7, RandomPurpose::kEnvReset, 0, 0), obs_(spec_.obs_size) {
    spec_.max_episode_steps = 0;
    spec_.relocatable = false;
    spec_.state_size = 0;
    spec_.global_state_size = 0;
    spec_.episode_metrics.clear();
  }
  const EnvSpec& spec() const override { return spec_; }
  void Reset(RandomStream&) override { Show(1); }
  bool Step(const float* action, float* reward) override {
    log_->actions.insert(log_->actions.end(), action, action + (spec_.discrete ? 1 : spec_.action_size));
    *reward = 0;
    if (random_.Below(40) == 0) return true;
    Show(0);
    return false;
  }
  void Observe(float* obs) const override { std::copy(obs_.begin(), obs_.end(), obs); }

 private:
  void Show(uint8_t reset) {
    // Some are beyond what the normaliser clips.
    for (float& value : obs_) value = static_cast<float>((random_.Below(500) == 0 ? 12 : 1.5) * random_.Normal());
    log_->observations.insert(log_->observations.end(), obs_.begin(), obs_.end());
    log_->resets.push_back(reset);
  }

  EnvSpec spec_;
  ReferencePolicy* const log_;
  RandomStream random_;
  std::vector<float> obs_;
};

// Plays the policy as the loop of `skein eval` does.
void Play(const CheckpointPolicy& loaded, const EnvOptions& options, ReferencePolicy* log) {
  EnvOptions plain = options;
  plain.transforms.clear();
  std::vector<std::unique_ptr<Env>> envs;
  envs.push_back(std::make_unique<ScriptedEnv>(FindEnvSpec(loaded.spec.id, plain).value(), log));
  if (!WrapInTransforms(options.transforms, &envs).ok()) std::abort();
  const auto env = Must(VectorEnv::Wrap(std::move(envs), {}));
  std::vector<float> obs(env->spec().obs_size), head(loaded.policy->spec().head_size());
  std::vector<float> state(loaded.policy->spec().state_size());
  env->ResetAll(0);
  for (int step = 0; step < kReferenceSteps; ++step) {
    env->Observe(obs.data());
    if (log->resets.back() == 1) std::fill(state.begin(), state.end(), 0.0f);
    loaded.policy->Act(obs.data(), state.data(), 1, head.data(), state.data());
    log->heads.insert(log->heads.end(), head.begin(), head.end());
    std::vector<float> action = head;
    if (loaded.spec.discrete) {
      action = {static_cast<float>(std::max_element(head.begin(), head.end()) - head.begin())};
    }
    env->Step(action.data());
  }
  log->resets.resize(kReferenceSteps);  // The last step has shown one more.
  log->observations.resize(static_cast<size_t>(kReferenceSteps) * FindEnvSpec(loaded.spec.id, plain)->obs_size);
}

void Sample(ReferencePolicy* reference) {
  RandomStream random(3, RandomPurpose::kAction, 0, 0);
  const bool discrete = reference->actor->portable().spec.discrete;
  reference->noise.resize(reference->actions.size());
  for (float& value : reference->noise) {
    value = discrete ? static_cast<float>(random.Below(1 << 20)) / (1 << 20) : static_cast<float>(random.Normal());
  }
  reference->samples.resize(reference->actions.size());
  reference->actor->Action(reference->heads.data(), reference->noise.data(), kReferenceSteps,
                           reference->samples.data());
}

}  // namespace

std::vector<std::string> ReferenceNames() {
  std::vector<std::string> names;
  for (const Case& one : kCases) names.push_back(one.name);
  return names;
}

ReferencePolicy MakeReference(const std::string& name, const std::string& folder) {
  const auto* const found =
      std::find_if(std::begin(kCases), std::end(kCases), [&](const Case& one) { return one.name == name; });
  v1::RunConfig base;
  if (!MergeYaml(found->yaml, name, &base).ok()) std::abort();
  const v1::RunConfig config = Must(LoadRunConfig("", {}, 1, base));
  const EnvOptions options = MakeEnvOptions(config.env());
  ReferencePolicy reference = {.name = name, .checkpoint = folder + "/" + name};
  WriteCheckpoint(config, FindEnvSpec(config.env().id(), options).value(), reference.checkpoint);
  const CheckpointPolicy loaded = Must(LoadCheckpointPolicy(reference.checkpoint));
  reference.actor = std::make_shared<PortableActor>(MakePortable(loaded), loaded.policy);
  Play(loaded, options, &reference);
  Sample(&reference);
  return reference;
}

}  // namespace skein
