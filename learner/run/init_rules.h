// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "absl/status/status.h"
#include "skein/v1/config.pb.h"

namespace skein {

// Checks that weights of a run with the configuration `from` mean the same in one with `to`, as far as the tensors do
// not show it: activation, normalisers, and the transforms of observations and actions. Both have their defaults
// applied. FailedPrecondition: they do not; names the setting and both values.
absl::Status CheckWeightsFit(const v1::RunConfig& from, const v1::RunConfig& to);

}  // namespace skein
