// SPDX-License-Identifier: Apache-2.0
#include "bench/env_loops.h"

#include <algorithm>
#include <future>
#include <numeric>
#include <utility>

#include "actor/runner_env.h"
#include "base/number/philox.h"
#include "base/process/clock.h"
#include "env/external/external_envs.h"
#include "env/external/external_id.h"
#include "env/registry.h"
#include "env/transform/transform.h"

namespace skein {
namespace {

constexpr int64_t kActionFloats = 8192;  // Few enough to stay in the first-level cache.
constexpr int64_t kBareSteps = 16;       // A job of the limit, of one simulation: it stays in the caches.
constexpr int kBareEnvs = 16;            // Simulations on a thread of the limit, at most.
constexpr int kRecordedSteps = 16'000;   // Of the episodes of a thread's simulations, which are repeated.

int64_t ActionWidth(const EnvSpec& spec) { return int64_t{spec.num_agents} * (spec.discrete ? 1 : spec.action_size); }

int64_t ActionRows(int64_t width) { return std::max<int64_t>(64, kActionFloats / width); }

int StepLimit(const v1::RunConfig& config, const EnvSpec& spec) {
  const int given = static_cast<int>(config.env().max_episode_steps());
  return given > 0 ? given : spec.max_episode_steps;
}

// Env::Step over and over, with resets.
class EnvLoop {
 public:
  EnvLoop(std::unique_ptr<Env> env, const v1::RunConfig& config, uint64_t env_index)
      : env_(std::move(env)),
        seed_(config.seed()),
        env_index_(env_index),
        limit_(StepLimit(config, env_->spec())),
        reward_(env_->spec().num_agents),
        active_(env_->spec().num_agents) {
    env_->SetEnvIndex(env_index);
    Reset();
  }

  void Step(const float* actions, int64_t rows, int64_t width, StepTally* tally) {
    env_->Active(active_.data());
    ++tally->env_steps;
    tally->agent_steps += std::accumulate(active_.begin(), active_.end(), int64_t{0});
    const bool terminated = env_->Step(actions + row_ * width, reward_.data());
    row_ = row_ + 1 < rows ? row_ + 1 : 0;
    if (terminated || ++step_ == limit_) Reset();
  }

 private:
  void Reset() {
    RandomStream random(seed_, RandomPurpose::kEnvReset, env_index_, episode_++);
    step_ = 0;
    env_->Reset(random);
  }

  const std::unique_ptr<Env> env_;
  const uint64_t seed_, env_index_;
  const int limit_;
  std::vector<float> reward_;
  std::vector<uint8_t> active_;
  uint64_t episode_ = 0;
  int step_ = 0;
  int64_t row_ = 0;
};

// The simulations of the limit on a thread with `size` environments.
int64_t Simulations(int64_t size) { return std::min<int64_t>(size, kBareEnvs); }

// One job steps `envs` with the rows of `actions` [rows, D] in turn, each from its first row on (RowsOfSimulation).
Job PhysicsJob(std::shared_ptr<VectorEnv> envs, const float* actions, int64_t rows, StepTally* tally) {
  const int64_t size = envs->size(), width = ActionWidth(envs->spec());
  return [=, step = std::vector<float>(size * width), row = int64_t{0}]() mutable -> int64_t {
    for (int64_t e = 0; e < size; ++e) {
      std::copy_n(actions + (row + RowsOfSimulation(e, size, rows).first) % rows * width, width,
                  step.data() + e * width);
    }
    row = row + 1 < rows ? row + 1 : 0;
    envs->Step(step.data());
    tally->env_steps += size;
    tally->agent_steps += size;  // All have one agent.
    return size;
  };
}

// All jobs keep their tallies.
StepRates MeasureSteps(const std::vector<Job>& jobs, const std::vector<std::unique_ptr<StepTally>>& tallies,
                       absl::Duration duration) {
  for (const auto& tally : tallies) tally->env_steps = tally->agent_steps = 0;
  const double rate = MeasureRate(jobs, duration);
  StepTally all;
  for (const auto& tally : tallies) {
    all.env_steps += tally->env_steps;
    all.agent_steps += tally->agent_steps;
  }
  return {rate, rate * static_cast<double>(all.agent_steps) / static_cast<double>(std::max<int64_t>(1, all.env_steps))};
}

absl::Status FailureOf(const std::vector<std::unique_ptr<StepTally>>& tallies) {
  for (const auto& tally : tallies) {
    if (!tally->failure.ok()) return tally->failure;
  }
  return absl::OkStatus();
}

}  // namespace

SimulationRows RowsOfSimulation(int64_t index, int64_t size, int64_t rows) {
  return {index * (rows / size), rows / Simulations(size)};
}

std::vector<float> RandomActions(const EnvSpec& spec, int64_t rows, int64_t width, uint64_t seed) {
  std::vector<float> actions(rows * width);
  RandomStream random(seed, RandomPurpose::kAction, 0, 0);
  for (size_t i = 0; i < actions.size(); ++i) {
    if (spec.discrete) {
      actions[i] = static_cast<float>(random.Below(static_cast<uint32_t>(spec.action_size)));
    } else {
      const size_t d = i % spec.action_size;
      actions[i] = static_cast<float>(random.Uniform(spec.action_low[d], spec.action_high[d]));
    }
  }
  return actions;
}

absl::Status TransformActions(const VectorEnv::Options& options, int64_t width, std::vector<float>* actions) {
  const auto transforms = FindTransforms(options.env_id, options.env);
  if (!transforms.ok()) return transforms.status();
  for (size_t i = 0; i < actions->size(); i += static_cast<size_t>(width)) {
    TransformAction(*transforms, actions->data() + i);
  }
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<EnvLimit>> EnvLimit::Make(const v1::RunConfig& config, uint32_t threads) {
  const VectorEnv::Options options = RunnerEnvOptions(config);
  const auto found = FindEnvSpec(options.env_id, options.env);
  if (!found.ok()) return found.status();
  const EnvSpec& spec = *found;
  if (const auto external = ParseExternalId(options.env_id);
      external.ok() && (external->kind == ExternalId::Kind::kPython || external->kind == ExternalId::Kind::kExec)) {
    std::unique_ptr<EnvLimit> limit(new EnvLimit);
    if (absl::Status s = limit->AddServers(options, threads); !s.ok()) return s;
    return limit;
  }
  const bool physics = FindEnvExtras(options.env_id).physics;
  std::unique_ptr<EnvLimit> limit(new EnvLimit);
  limit->what_ = physics ? "mj_step" : "Env::Step";
  const int64_t width = ActionWidth(spec), rows = physics ? kRecordedSteps : ActionRows(width);
  limit->actions_.push_back(RandomActions(spec, rows, width, config.seed()));
  const float* const actions = limit->actions_[0].data();
  if (physics) {
    std::vector<std::future<absl::StatusOr<std::vector<Bare>>>> made;  // Recording takes seconds.
    for (uint32_t i = 0; i < threads; ++i) {
      made.push_back(std::async(std::launch::async, MakeBareLoops, config, actions, i));
    }
    for (auto& one : made) {
      auto loops = one.get();
      if (!loops.ok()) return loops.status();
      limit->AddBareLoops(*std::move(loops));
    }
    if (absl::Status s = TransformActions(options, width, &limit->actions_[0]); !s.ok()) return s;
    return limit;
  }
  for (uint32_t i = 0; i < threads; ++i) {
    auto env = MakeEnv(options.env_id, options.env);
    if (!env.ok()) return env.status();
    StepTally* const tally = limit->tallies_.emplace_back(std::make_unique<StepTally>()).get();
    limit->jobs_.push_back(
        [loop = std::make_shared<EnvLoop>(*std::move(env), config, i), actions, rows, width, tally]() -> int64_t {
          loop->Step(actions, rows, width, tally);
          return 1;
        });
  }
  return limit;
}

absl::StatusOr<std::unique_ptr<EnvLimit>> EnvLimit::MakeReplay(const v1::RunConfig& config,
                                                               std::vector<std::vector<float>> actions,
                                                               uint64_t episodes) {
  const VectorEnv::Options options = RunnerEnvOptions(config);
  const auto spec = FindEnvSpec(options.env_id, options.env);
  if (!spec.ok()) return spec.status();
  std::unique_ptr<EnvLimit> limit(new EnvLimit);
  limit->what_ = "mj_step";
  limit->actions_ = std::move(actions);
  for (std::vector<float>& taken : limit->actions_) {
    if (absl::Status s = TransformActions(options, spec->action_size, &taken); !s.ok()) return s;
  }
  for (size_t i = 0; i < limit->actions_.size(); ++i) {
    auto bare = BareLoop::Make(options.env_id, {.mujoco = options.env.mujoco,
                                                .seed = options.seed,
                                                .env_index = i,
                                                .episode_steps = std::vector<int>(episodes, StepLimit(config, *spec))});
    if (!bare.ok()) return bare.status();
    const std::vector<float>& taken = limit->actions_[i];
    limit->AddBareLoops({{.loop = *std::move(bare),
                          .actions = taken.data(),
                          .rows = static_cast<int64_t>(taken.size()) / spec->action_size}});
  }
  return limit;
}

absl::Status EnvLimit::AddServers(const VectorEnv::Options& options, uint32_t threads) {
  // A request that takes so long costs nothing beside its steps.
  static constexpr absl::Duration kLongEnough = absl::Milliseconds(10);
  what_ = "its own loop";
  for (uint32_t i = 0; i < threads; ++i) {
    auto opened = OpenLocalWorld(options.env_id, static_cast<size_t>(options.size), options.env.external);
    if (!opened.ok()) return opened.status();
    StepTally* const tally = tallies_.emplace_back(std::make_unique<StepTally>()).get();
    jobs_.push_back([world = std::shared_ptr<World>(*std::move(opened)), timeout = options.env.external.step_timeout,
                     steps = static_cast<uint32_t>(options.size), id = options.env_id, tally]() mutable -> int64_t {
      if (!tally->failure.ok()) return 0;
      world->columns().seed[0] = steps;
      const absl::Duration begin = MonotonicNow();
      if (const absl::Status s = world->Exchange(WorldRequest::kBare, timeout); !s.ok()) {
        tally->failure = absl::Status(s.code(), absl::StrCat(id, ": ", s.message()));
        return 0;
      }
      const int64_t taken = steps;
      if (MonotonicNow() - begin < kLongEnough) steps *= 2;
      tally->env_steps += taken;
      tally->agent_steps += taken * world->spec().num_agents;
      return taken;
    });
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<EnvLimit::Bare>> EnvLimit::MakeBareLoops(const v1::RunConfig& config, const float* actions,
                                                                    uint32_t thread) {
  const VectorEnv::Options options = RunnerEnvOptions(config);
  auto env = MakeEnv(options.env_id, options.env);
  if (!env.ok()) return env.status();
  const EnvSpec& spec = (*env)->spec();
  const int64_t size = options.size;
  std::vector<Bare> loops;
  for (int64_t e = 0; e < Simulations(size); ++e) {
    const auto [first, rows] = RowsOfSimulation(e, size, kRecordedSteps);
    const float* const own = actions + first * ActionWidth(spec);
    const uint64_t index = uint64_t{thread} * static_cast<uint64_t>(size) + static_cast<uint64_t>(e);
    std::vector<int> steps = EpisodeSteps(**env, options.seed, index, StepLimit(config, spec), own, rows);
    auto bare = BareLoop::Make(
        options.env_id,
        {.mujoco = options.env.mujoco, .seed = options.seed, .env_index = index, .episode_steps = std::move(steps)});
    if (!bare.ok()) return bare.status();
    loops.push_back({.loop = *std::move(bare), .actions = own, .rows = rows});
  }
  return loops;
}

void EnvLimit::AddBareLoops(std::vector<Bare> loops) {
  StepTally* const tally = tallies_.emplace_back(std::make_unique<StepTally>()).get();
  jobs_.push_back([loops = std::move(loops), next = size_t{0}, tally]() mutable {
    const Bare& bare = loops[next];
    next = next + 1 < loops.size() ? next + 1 : 0;
    bare.loop->Run(bare.actions, bare.rows, kBareSteps);
    tally->env_steps += kBareSteps;
    tally->agent_steps += kBareSteps;  // All have one agent.
    return kBareSteps;
  });
}

StepRates EnvLimit::MeasureRates(absl::Duration duration) { return MeasureSteps(jobs_, tallies_, duration); }

absl::Status EnvLimit::failure() const { return FailureOf(tallies_); }

absl::StatusOr<std::unique_ptr<VectorEnvLoops>> VectorEnvLoops::Make(const v1::RunConfig& config, uint32_t threads) {
  std::unique_ptr<VectorEnvLoops> loops(new VectorEnvLoops);
  const VectorEnv::Options options = RunnerEnvOptions(config);
  const bool physics = FindEnvExtras(options.env_id).physics;
  for (uint32_t i = 0; i < threads; ++i) {
    auto made = VectorEnv::Make(options);
    if (!made.ok()) return made.status();
    const std::shared_ptr<VectorEnv> envs = *std::move(made);
    const int64_t width = ActionWidth(envs->spec()) * (physics ? 1 : envs->size());
    const int64_t rows = physics ? kRecordedSteps : ActionRows(width);
    if (i == 0) loops->actions_ = RandomActions(envs->spec(), rows, width, config.seed());
    envs->ResetAll(uint64_t{i} * options.size);
    StepTally* const tally = loops->tallies_.emplace_back(std::make_unique<StepTally>()).get();
    if (physics) {
      loops->jobs_.push_back(PhysicsJob(envs, loops->actions_.data(), rows, tally));
      continue;
    }
    const size_t agents = size_t(envs->size()) * envs->spec().num_agents;
    loops->jobs_.push_back(
        [envs, actions = loops->actions_.data(), row = int64_t{0}, rows, width, tally, agents]() mutable -> int64_t {
          if (!tally->failure.ok()) return 0;
          const VectorEnv::StepResult result = envs->Step(actions + row * width);
          if (tally->failure = envs->failure(); !tally->failure.ok()) return 0;
          row = row + 1 < rows ? row + 1 : 0;
          tally->env_steps += envs->size();
          tally->agent_steps += std::accumulate(result.active, result.active + agents, int64_t{0});
          return envs->size();
        });
  }
  return loops;
}

StepRates VectorEnvLoops::MeasureRates(absl::Duration duration) { return MeasureSteps(jobs_, tallies_, duration); }

absl::Status VectorEnvLoops::failure() const { return FailureOf(tallies_); }

}  // namespace skein
