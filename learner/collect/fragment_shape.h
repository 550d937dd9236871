// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "learner/collect/admission.h"
#include "learner/collect/ticket_state.h"
#include "skein/v1/config.pb.h"

namespace skein {

// The shape of every fragment of the run. rollout.fragment_steps = 0 means all steps of an iteration, or the largest
// part that fits into a message; in mode async, where a long fragment is old before it arrives, at most 32.
// REQUIRES: `config` is validated. InvalidArgument: a fragment might not fit into a message.
// Other errors as VectorEnv::Make.
absl::StatusOr<FragmentShape> MakeFragmentShape(const v1::RunConfig& config);

// Checks that environments of `shape` can continue from `state`, which a checkpoint had. FailedPrecondition: another
// version wrote it, whose environments save other numbers.
absl::Status CheckEnvState(const TicketState& state, const FragmentShape& shape);

}  // namespace skein
