// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <torch/types.h>

#include "learner/network/normalizer.h"

namespace skein {

// Clips `rows` [B, size], any floating type and device, before they update running moments: each number to
// mean +- max(10 standard deviations, 10) of the moments so far. A few extreme rows then cannot dominate the moments.
// Before the moments' first update nothing is clipped. Numbers inside the range keep their bits, and NaN stays NaN.
// The minimum reach of 10 admits changes in inputs that have hardly varied so far, such as a flag, or the pitch of a
// cheetah that has not fallen over yet. The result is the same on all ranks because their moments are equal.
torch::Tensor Winsorize(const torch::Tensor& rows, const RunningMoments& moments);

}  // namespace skein
