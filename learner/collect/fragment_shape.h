// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "absl/status/statusor.h"
#include "learner/collect/admission.h"
#include "skein/v1/config.pb.h"

namespace skein {

// The shape of every fragment of the run. rollout.fragment_steps = 0 means all steps of an iteration, or the largest
// part that fits into a message; in mode async, where a long fragment is old before it arrives, at most 32.
// REQUIRES: `config` is validated. InvalidArgument: a fragment might not fit into a message.
// Other errors as VectorEnv::Make.
absl::StatusOr<FragmentShape> MakeFragmentShape(const v1::RunConfig& config);

}  // namespace skein
