// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "skein/v1/config.pb.h"

// What each algorithm asks of the rest of a configuration; beside config.proto the one place of base that names them.
// REQUIRES: defaults are applied.
namespace skein {

// InvalidArgument: names the settings that do not go together.
absl::Status CheckAlgorithm(const v1::RunConfig& config);

// The section of the algorithm, such as "ppo".
std::string AlgorithmName(const v1::RunConfig& config);

// Samples of one gradient step, as the algorithm's minibatch_size says.
uint32_t MinibatchSize(const v1::RunConfig& config);

}  // namespace skein
