// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "absl/status/statusor.h"
#include "env/mujoco/model.h"

namespace skein {

// The half cheetah's body and ground, compiled at the first call and shared by all. Thread-safe.
// Limbs touch the ground and nothing else: those eight pairs are listed, so that MuJoCo does not search for what might
// touch at each step, which takes it a quarter of its time. The states are those of the published model, to the bit.
// Wawrzynski 2009, "A cat-like robot real-time learning to run"; figures as in Gymnasium's version 5.
// 9 degrees of freedom, in this order: trunk x, z, pitch; back hip, knee, ankle; front hip, knee, ankle.
// 6 motors: the six leg joints in the same order.
// Internal: the linked MuJoCo does not accept it.
const absl::StatusOr<SharedModel>& HalfCheetahModel();
// The same body as Gymnasium has it: what may touch is searched for at each step.
const absl::StatusOr<SharedModel>& PublishedHalfCheetahModel();

}  // namespace skein
