// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "absl/status/statusor.h"
#include "learner/admission.h"
#include "skein/v1/config.pb.h"

namespace skein {

// Steps of each environment in one fragment. rollout.fragment_steps = 0 means all of an iteration; in mode async, where
// a long fragment is old before it arrives, the largest part of it that is at most 32.
// REQUIRES: `config` is validated.
int64_t FragmentSteps(const v1::RunConfig& config);

// What every fragment of the run looks like. InvalidArgument: it might not fit into a message.
// Otherwise errors as VectorEnv::Make.
absl::StatusOr<BatchShape> MakeFragmentShape(const v1::RunConfig& config);

}  // namespace skein
