// SPDX-License-Identifier: Apache-2.0
#include "actor/limit_probe.h"

#include <algorithm>
#include <memory>
#include <numeric>
#include <thread>
#include <utility>
#include <vector>

#include "absl/synchronization/notification.h"
#include "base/number/philox.h"
#include "base/process/clock.h"
#include "base/process/cores.h"
#include "base/process/thread_priority.h"
#include "env/external/external_id.h"
#include "env/synthetic/latency.h"

namespace skein {
namespace {

constexpr size_t kActionRows = 64;
constexpr int kStepsBetweenClocks = 8;
// Of one thread: few, so that one step is short however many a runner has.
constexpr int kMostEnvs = 8;
constexpr uint64_t kSeed = 0x6c696d6974;  // No run uses this seed, so the streams are the probe's own.

std::vector<float> RandomActions(const EnvSpec& spec, size_t count) {
  RandomStream random(kSeed, RandomPurpose::kAction, 0, 0);
  std::vector<float> actions(count);
  for (size_t i = 0; i < count; ++i) {
    const size_t d = spec.discrete ? 0 : i % static_cast<size_t>(spec.action_size);
    actions[i] = spec.discrete ? static_cast<float>(random.Below(static_cast<uint32_t>(spec.action_size)))
                               : static_cast<float>(random.Uniform(spec.action_low[d], spec.action_high[d]));
  }
  return actions;
}

double StepsPerSecond(VectorEnv* envs, const std::vector<float>& actions, absl::Duration duration) {
  const size_t width = actions.size() / kActionRows;
  const absl::Duration begin = MonotonicNow();
  absl::Duration now = begin;
  size_t steps = 0;
  do {
    for (int i = 0; i < kStepsBetweenClocks; ++i) envs->Step(actions.data() + width * (steps++ % kActionRows));
    now = MonotonicNow();
  } while (now - begin < duration);
  return static_cast<double>(steps) * envs->size() / absl::ToDoubleSeconds(now - begin);
}

}  // namespace

absl::StatusOr<double> MeasureEnvLimit(VectorEnv::Options options, uint32_t threads, absl::Duration duration,
                                       const std::vector<EnvActivity*>& activities) {
  if (options.env_id == LatencySpec().id || IsExternalId(options.env_id)) return 0.0;
  options.seed = kSeed;
  options.size = std::min(options.size, kMostEnvs);
  threads = std::min(threads, Cores());
  std::vector<std::unique_ptr<VectorEnv>> envs;
  for (uint32_t i = 0; i < threads; ++i) {
    auto made = VectorEnv::Make(options);
    if (!made.ok()) return made.status();
    if (i < activities.size()) (*made)->SetActivity(activities[i]);
    (*made)->ResetAll(uint64_t{i} * static_cast<uint64_t>(options.size));
    envs.push_back(*std::move(made));
  }
  const EnvSpec& spec = envs.front()->spec();
  const int width = options.size * spec.num_agents * (spec.discrete ? 1 : spec.action_size);
  const std::vector<float> actions = RandomActions(spec, kActionRows * static_cast<size_t>(width));

  absl::Notification start;
  std::vector<double> rates(threads);
  std::vector<std::thread> steppers;
  for (uint32_t i = 0; i < threads; ++i) {
    steppers.emplace_back([&, i] {
      LowerThreadPriority();  // As runners do: the limit is what they can reach.
      start.WaitForNotification();
      rates[i] = StepsPerSecond(envs[i].get(), actions, duration);
    });
  }
  start.Notify();
  for (std::thread& stepper : steppers) stepper.join();
  for (const auto& one : envs) {
    if (!one->failure().ok()) return 0.0;
  }
  return std::accumulate(rates.begin(), rates.end(), 0.0);
}

}  // namespace skein
