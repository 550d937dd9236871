// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "learner/optimize/batch.h"
#include "trajectory/columns.h"

namespace skein {

// Wraps the staged columns as tensors by field name, without copying: `columns` must outlive them and not change.
// Flags are copied to bool tensors; fields per episode are left out.   Columns -> MakeBatch -> Algorithm
Batch MakeBatch(const Columns& columns);

}  // namespace skein
