// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "skein/v1/fit.pb.h"

namespace skein {

// YAML file (empty path = none) -> overrides "a.b=c" -> defaults -> validated FitConfig. Errors as LoadRunConfig.
absl::StatusOr<v1::FitConfig> LoadFitConfig(const std::string& path, const std::vector<std::string>& overrides);

// train.parts for `ranks` ranks: what is set, or as many as ranks, and 2 for one rank.
uint32_t PartsFor(const v1::FitTrainConfig& train, uint32_t ranks);

// Whether a training that began with the settings `was` can go on with `is` and use each sequence once an epoch.
// FailedPrecondition: names the first setting that must not differ.
absl::Status CheckGoesOn(const v1::FitConfig& was, const v1::FitConfig& is);

// As `text` of a checkpoint has it.
absl::StatusOr<v1::FitConfig> ParseFitConfig(const std::string& text, const std::string& source);

// Ranges, and rules between settings. REQUIRES: defaults applied. InvalidArgument names the settings and numbers.
absl::Status ValidateFitConfig(const v1::FitConfig& config);

}  // namespace skein
