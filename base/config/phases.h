// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "skein/v1/config.pb.h"

// Phases of a run: parts with settings of their own.   env steps -> PhaseAt -> ConfigOfPhase
// A phase is given by its index in RunConfig.phases. As many as there are, or more, means the run's own settings, which
// are in force after the last phase, or always if the run has none. Pure functions.
namespace skein {

// The phase of an iteration that begins with `env_steps` trained.
uint32_t PhaseAt(const v1::RunConfig& config, uint64_t env_steps);

// The run's settings with those of the phase in their place; without phases. A list that the phase sets replaces the
// run's.
v1::RunConfig ConfigOfPhase(const v1::RunConfig& config, uint32_t phase);

// The first phase whose environments are those of `phase`: phases that differ in other settings share their
// environments.
uint32_t EnvPhase(const v1::RunConfig& config, uint32_t phase);

// `config` with the settings of `set` in their place. A list that `set` has replaces that of `config`.
v1::RunConfig WithSettings(const v1::RunConfig& config, const v1::RunConfig& set);

// What `set` sets: "ppo.lr 1e-4, ppo.clip 0.1".
std::string DescribeSettings(const v1::RunConfig& set);

// What the phase sets: "env.mujoco.push_speed 0.5, ppo.lr 1e-4"; empty for the run's own settings.
std::string DescribePhase(const v1::RunConfig& config, uint32_t phase);

// InvalidArgument: `set` has settings that may not change during a run, or that contradict the rest of the run; the
// message begins with `path` and the setting. Ranges are not checked. REQUIRES: defaults are applied to `config`.
absl::Status CheckChanges(const v1::RunConfig& config, const v1::RunConfig& set, const std::string& path);

// InvalidArgument: phases without an end or out of order, settings that may not change during a run, or that contradict
// the rest of the run; the message begins with the key, such as "phases[0].set.ppo.lr". Ranges are those of
// ConfigOfPhase; ValidateRunConfig checks them. REQUIRES: defaults are applied.
absl::Status CheckPhases(const v1::RunConfig& config);

}  // namespace skein
