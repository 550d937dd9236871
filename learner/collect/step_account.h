// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "skein/v1/status.pb.h"

// Env steps by fate, over the ranks of a learner. Pure.
namespace skein {

void Add(const v1::StepAccount& from, v1::StepAccount* to);

// The account of a rank that is gone, as it last told it: `trained` steps that it had then or collected since went into
// an update all the same, and what else was pending is lost.
v1::StepAccount Settled(const v1::StepAccount& told, uint64_t trained);

}  // namespace skein
