// SPDX-License-Identifier: Apache-2.0
#include "sweep/metrics.h"

#include <limits>

namespace skein {
namespace {

prometheus::Family<prometheus::Gauge>& Family(prometheus::Registry* registry, const char* name, const char* help) {
  return prometheus::BuildGauge().Name(name).Help(help).Register(*registry);
}

}  // namespace

SweepMetrics::SweepMetrics(prometheus::Registry* registry)
    : registry_(registry),
      trials_(&Family(registry, "skein_sweep_trials", "Trials of the search, by state")),
      core_seconds_(&Family(registry, "skein_sweep_core_seconds", "Slots x cores x time of the search").Add({})),
      env_steps_(&Family(registry, "skein_sweep_env_steps", "Env steps that trials have trained").Add({})),
      failures_(&Family(registry, "skein_sweep_failures", "Trainings that failed and were started again, or given up")
                     .Add({})),
      used_cpu_(&Family(registry, "skein_sweep_used_cpu_seconds",
                        "CPU time of trainings on this machine, since the sweep was started")
                     .Add({})),
      used_memory_(
          &Family(registry, "skein_sweep_used_memory_bytes", "Resident memory of the trainings that are under way")
               .Add({})),
      best_(&Family(registry, "skein_sweep_best_value", "The metric of the best trial").Add({})) {
  auto& slots = Family(registry, "skein_sweep_slots", "Places for trainings, by use");
  busy_ = &slots.Add({{"use", "busy"}});
  free_ = &slots.Add({{"use", "free"}});
  SetTrials({{"running", 0}, {"paused", 0}, {"complete", 0}, {"stopped", 0}, {"failed", 0}});
  SetBest(std::nullopt);
}

void SweepMetrics::SetTrials(const std::map<std::string, int>& trials) {
  for (const auto& [state, count] : trials) trials_->Add({{"state", state}}).Set(count);
}

void SweepMetrics::SetSlots(uint32_t busy, uint32_t free) {
  busy_->Set(busy);
  free_->Set(free);
}

void SweepMetrics::SetWork(double core_seconds, double env_steps, uint32_t failures) {
  core_seconds_->Set(core_seconds);
  env_steps_->Set(env_steps);
  failures_->Set(failures);
}

void SweepMetrics::SetShare(const ResourceShare& share) {
  const auto set = [this](const char* name, const char* help, double value) {
    Family(registry_, name, help).Add({}).Set(value);
  };
  if (share.cpus) set("skein_sweep_slot_requested_cpus", "CPUs that each slot may use (resources)", *share.cpus);
  if (share.gpus) set("skein_sweep_slot_requested_gpus", "GPUs that each slot may use (resources)", *share.gpus);
  if (!share.memory_bytes) return;
  set("skein_sweep_slot_requested_memory_bytes", "Memory that each slot may use (resources)",
      static_cast<double>(*share.memory_bytes));
}

void SweepMetrics::SetUsage(const ProcessUsage& usage) {
  used_cpu_->Set(usage.cpu_seconds);
  used_memory_->Set(static_cast<double>(usage.memory_bytes));
}

void SweepMetrics::SetBest(std::optional<double> value) {
  best_->Set(value.value_or(std::numeric_limits<double>::quiet_NaN()));
}

}  // namespace skein
