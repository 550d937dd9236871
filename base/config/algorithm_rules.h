// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "skein/v1/config.pb.h"

// Rules that the run's algorithm sets for the other settings, read from the AlgorithmFacts beside its own settings in
// config.proto. Names no algorithm. Knows some settings by name, which mean the same in each algorithm that has them:
// minibatch_size, top_dirs, lr with lr_schedule, and kl_target in a message. REQUIRES: defaults are applied.
namespace skein {

// InvalidArgument: names the settings that contradict each other.
absl::Status CheckAlgorithm(const v1::RunConfig& config);

// Checks that `set`, which a phase or a callback sets at `path`, agrees with the run's algorithm. InvalidArgument: it
// is of another algorithm, or it sets a learning rate that the schedule itself changes.
absl::Status CheckAlgorithmChanges(const v1::RunConfig& config, const v1::RunConfig& set, const std::string& path);

// The sections of all algorithms, in the order of config.proto. The first is that of a run that names none.
std::vector<std::string> AlgorithmNames();

// The section of the algorithm, such as "ppo".
std::string AlgorithmName(const v1::RunConfig& config);

// The fields that fragments have because the algorithm reads them (FragmentShape::algorithm_fields).
std::vector<std::string> AlgorithmFields(const v1::RunConfig& config);

// Whether actors are asked for directions instead of steps.
bool SearchesDirections(const v1::RunConfig& config);

// The algorithm's setting top_dirs; 0: it has none, or that is 0.
uint32_t TopDirections(const v1::RunConfig& config);

// Samples of one gradient step: the algorithm's setting minibatch_size; where that is 0 or there is none, all samples
// of an iteration.
uint32_t MinibatchSize(const v1::RunConfig& config);
// Does nothing where the algorithm has no such setting.
void SetMinibatchSize(uint32_t samples, v1::RunConfig* config);

// Whether the algorithm has a setting of this name.
bool HasAlgorithmSetting(const v1::RunConfig& config, const std::string& name);

}  // namespace skein
