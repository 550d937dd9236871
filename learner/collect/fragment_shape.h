// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "absl/status/statusor.h"
#include "learner/collect/admission.h"
#include "skein/v1/config.pb.h"

namespace skein {

// What every fragment of the run looks like. rollout.fragment_steps = 0 means all steps of an iteration, or the largest
// part that fits into a message; in mode async, where a long fragment is old before it arrives, at most 32.
// REQUIRES: `config` is validated. InvalidArgument: even so it might not fit.
// Otherwise errors as VectorEnv::Make.
absl::StatusOr<FragmentShape> MakeFragmentShape(const v1::RunConfig& config);

}  // namespace skein
