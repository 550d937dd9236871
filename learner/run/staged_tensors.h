// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "learner/optimize/batch.h"
#include "trajectory/columns.h"

namespace skein {

// The staged columns as tensors by field name that read them in place: `columns` must outlive them and not change.
// Flags become bool, which are copies; fields of episodes are not among them.   Columns -> MakeBatch -> Algorithm
Batch MakeBatch(const Columns& columns);

}  // namespace skein
