// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "absl/status/statusor.h"
#include "env/mujoco/model.h"

namespace skein {

// The half cheetah's body and ground, compiled at the first call and shared by all. Thread-safe.
// Wawrzynski 2009, "A cat-like robot real-time learning to run"; figures as in Gymnasium's version 5.
// 9 degrees of freedom, in this order: trunk x, z, pitch; back hip, knee, ankle; front hip, knee, ankle.
// 6 motors: the six leg joints in the same order.
// Internal: the linked MuJoCo does not accept it.
const absl::StatusOr<SharedModel>& HalfCheetahModel();

}  // namespace skein
