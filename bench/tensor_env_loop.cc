// SPDX-License-Identifier: Apache-2.0
#include "bench/tensor_env_loop.h"

#include <torch/types.h>
#include <torch/utils.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/process/clock.h"
#include "env/env_config.h"
#include "env/tensor/tensor_env.h"
#include "learner/optimize/memory_limit.h"
#include "learner/ranks/training_device.h"
#include "learner/run/recorded_env.h"

namespace skein {
namespace {

constexpr int64_t kActionRows = 64;   // Sets of actions that are taken in turn.
constexpr int64_t kStepsAtOnce = 32;  // Between two looks at the clock, which wait for the device.

// What Torch threw while `doing` something with environments.
absl::Status Failed(const char* doing, int64_t worlds, const std::exception& error) {
  if (!IsOutOfMemory(error)) {
    return absl::InternalError(absl::StrCat("Torch failed while ", doing, " ", worlds, " worlds: ", error.what()));
  }
  return absl::ResourceExhaustedError(
      absl::StrCat("out of memory while ", doing, " ", worlds, " worlds; take fewer --worlds or, of a search, --dirs"));
}

}  // namespace

struct TensorEnvLoop::Impl {
  std::unique_ptr<TensorEnv> env;
  std::string device;
  torch::Tensor actions;  // [kActionRows, E, A(, 2)]
  torch::Tensor obs;      // [E, A, O]

  // Number of agents whose alive flag was set.
  int64_t Steps() {
    torch::Tensor agents = torch::zeros({}, torch::TensorOptions(torch::kInt64).device(obs.device()));
    for (int64_t t = 0; t < kStepsAtOnce; ++t) {
      agents += env->Advance(actions[t % kActionRows]).active.sum();
      env->BeginEpisodes();
      env->Observe(obs);
    }
    return agents.item<int64_t>();
  }
};

TensorEnvLoop::TensorEnvLoop(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
TensorEnvLoop::~TensorEnvLoop() = default;

const std::string& TensorEnvLoop::device() const { return impl_->device; }

absl::StatusOr<std::unique_ptr<TensorEnvLoop>> TensorEnvLoop::Make(const v1::RunConfig& config, int64_t envs) {
  try {
    at::set_num_threads(static_cast<int>(config.learner().torch_threads()));
    const auto where = ParseTrainingDevice(config.learner().device(), 0);
    if (!where.ok()) return where.status();
    TensorEnv::Options options;
    options.worlds = envs;
    options.seed = config.seed();
    options.max_episode_steps = static_cast<int>(config.env().max_episode_steps());
    options.device = *where;
    auto env = MakeTensorEnv(config.env().id(), options, MakeEnvOptions(config.env()));
    if (!env.ok()) return env.status();
    auto impl = std::make_unique<Impl>();
    impl->env = RecordOnGpu(*std::move(env), *where);
    impl->device = where->str();
    const EnvSpec& spec = impl->env->spec();
    std::vector<int64_t> shape = {kActionRows, envs, spec.num_agents};
    if (!spec.discrete) shape.push_back(spec.action_size);
    torch::manual_seed(config.seed());
    impl->actions = spec.discrete ? torch::randint(spec.action_size, shape, torch::kInt64).to(*where)
                                  : torch::rand(shape).mul_(2).sub_(1).to(*where);
    impl->obs = torch::empty({envs, spec.num_agents, spec.obs_size}, torch::TensorOptions().device(*where));
    impl->env->ResetAll();
    return std::unique_ptr<TensorEnvLoop>(new TensorEnvLoop(std::move(impl)));
  } catch (const std::exception& error) {
    return Failed("making", envs, error);
  }
}

absl::StatusOr<TensorEnvLoop::Rates> TensorEnvLoop::Measure(absl::Duration duration) {
  try {
    impl_->env->BeginRollout();
    impl_->Steps();  // Warm-up: work that a device does only once.
    int64_t steps = 0, agent_steps = 0;
    const absl::Duration begin = MonotonicNow();
    absl::Duration now = begin;
    while (now - begin < duration) {
      agent_steps += impl_->Steps();
      steps += kStepsAtOnce;
      now = MonotonicNow();
    }
    if (!impl_->env->EndRollout()) return absl::InternalError("too few next episodes had been prepared");
    const double seconds = absl::ToDoubleSeconds(now - begin);
    return Rates{static_cast<double>(steps * impl_->env->worlds()) / seconds,
                 static_cast<double>(agent_steps) / seconds};
  } catch (const std::exception& error) {
    return Failed("stepping", impl_->env->worlds(), error);
  }
}

}  // namespace skein
