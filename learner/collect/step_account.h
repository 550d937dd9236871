// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "skein/v1/status.pb.h"

// Sums of step accounts (env steps by fate) over the ranks of a learner. Pure.
namespace skein {

void Add(const v1::StepAccount& from, v1::StepAccount* to);

// The final account of a rank that is gone. `told` is its last report. `trained` steps, pending in the report or
// collected since, went into an update; the report's other pending steps are lost.
v1::StepAccount Settled(const v1::StepAccount& told, uint64_t trained);

}  // namespace skein
