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
#include "env/uav/tensor/tensor_world.h"
#include "env/uav/tensor_form.h"
#include "learner/ranks/training_device.h"

namespace skein {
namespace {

constexpr int64_t kActionRows = 64;   // Sets of actions that are taken in turn.
constexpr int64_t kStepsAtOnce = 32;  // Between two looks at the clock, which wait for the device.
constexpr int64_t kWorldsForAMap = 32;
constexpr int64_t kLeastMaps = 64;

}  // namespace

struct TensorEnvLoop::Impl {
  std::unique_ptr<TensorWorld> world;
  std::string device;
  torch::Tensor actions;  // [kActionRows, E, A(, 2)]
  torch::Tensor obs;      // [E, A, O]

  // How many agents took part.
  int64_t Steps() {
    torch::Tensor agents = torch::zeros({}, torch::TensorOptions(torch::kInt64).device(obs.device()));
    for (int64_t t = 0; t < kStepsAtOnce; ++t) {
      agents += world->Advance(actions[t % kActionRows]).active.sum();
      world->BeginEpisodes();
      world->Observe(obs);
    }
    return agents.item<int64_t>();
  }
};

TensorEnvLoop::TensorEnvLoop(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
TensorEnvLoop::~TensorEnvLoop() = default;

const std::string& TensorEnvLoop::device() const { return impl_->device; }

absl::StatusOr<std::unique_ptr<TensorEnvLoop>> TensorEnvLoop::Make(const v1::RunConfig& config) {
  const auto task = FindTensorForm(config.env().id());
  if (!task.ok()) return task.status();
  try {
    at::set_num_threads(static_cast<int>(config.learner().torch_threads()));
    const auto where = ParseTrainingDevice(config.learner().device(), 0);
    if (!where.ok()) return where.status();
    TensorWorld::Options options;
    options.task = *task;
    options.uav = MakeEnvOptions(config.env()).uav;
    const int64_t worlds = config.rollout().num_envs();
    options.num_envs = worlds;
    options.seed = config.seed();
    options.max_episode_steps = static_cast<int>(config.env().max_episode_steps());
    options.device = *where;
    options.prepared_per_step = std::max(kLeastMaps, worlds / kWorldsForAMap);
    auto world = TensorWorld::Make(options);
    if (!world.ok()) return world.status();
    auto impl = std::make_unique<Impl>();
    impl->world = *std::move(world);
    impl->device = where->str();
    const EnvSpec& spec = impl->world->spec();
    std::vector<int64_t> shape = {kActionRows, worlds, spec.num_agents};
    if (!spec.discrete) shape.push_back(spec.action_size);
    torch::manual_seed(config.seed());
    impl->actions = spec.discrete ? torch::randint(spec.action_size, shape, torch::kInt64).to(*where)
                                  : torch::rand(shape).mul_(2).sub_(1).to(*where);
    impl->obs = torch::empty({worlds, spec.num_agents, spec.obs_size}, torch::TensorOptions().device(*where));
    impl->world->ResetAll();
    return std::unique_ptr<TensorEnvLoop>(new TensorEnvLoop(std::move(impl)));
  } catch (const std::exception& error) {
    return absl::InternalError(absl::StrCat("Torch failed while making the tensor form: ", error.what()));
  }
}

absl::StatusOr<TensorEnvLoop::Rates> TensorEnvLoop::Measure(absl::Duration duration) {
  try {
    impl_->Steps();  // What is done only once on a device is done.
    int64_t steps = 0, agent_steps = 0;
    const absl::Duration begin = MonotonicNow();
    absl::Duration now = begin;
    while (now - begin < duration) {
      agent_steps += impl_->Steps();
      steps += kStepsAtOnce;
      now = MonotonicNow();
    }
    if (impl_->world->missed()) return absl::InternalError("an episode began whose map had not been made");
    const double seconds = absl::ToDoubleSeconds(now - begin);
    return Rates{static_cast<double>(steps * impl_->world->num_envs()) / seconds,
                 static_cast<double>(agent_steps) / seconds};
  } catch (const std::exception& error) {
    return absl::InternalError(absl::StrCat("Torch failed while stepping environments: ", error.what()));
  }
}

}  // namespace skein
