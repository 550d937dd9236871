// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "skein/v1/config.pb.h"

// What each algorithm requires of the other settings. Besides config.proto, only this file of base names algorithms.
// REQUIRES: defaults are applied.
namespace skein {

// InvalidArgument: names the settings that contradict each other.
absl::Status CheckAlgorithm(const v1::RunConfig& config);

// The section of the algorithm, such as "ppo".
std::string AlgorithmName(const v1::RunConfig& config);

// Samples of one gradient step: the algorithm's setting minibatch_size.
uint32_t MinibatchSize(const v1::RunConfig& config);

}  // namespace skein
