// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "absl/status/statusor.h"
#include "env/env.h"

namespace skein {

// HalfCheetah-v5: a planar animal with two legs runs to the right, at 20 decisions a second; it never terminates.
// obs: the 8 positions after x, then the 9 velocities, in HalfCheetahModel's order.
// State saved: time, 9 positions, 9 velocities, 9 accelerations from which the contact solver starts.
const EnvSpec& HalfCheetahSpec();

// Internal: the linked MuJoCo does not accept the model.
absl::StatusOr<std::unique_ptr<Env>> MakeHalfCheetah();

}  // namespace skein
