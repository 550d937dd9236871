// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <torch/types.h>

#include "learner/network/normalizer.h"

namespace skein {

// What running moments are to take in of `rows` [B, size], any floating type and device: each number clipped to
// mean +- max(10 deviations, 10) of the moments so far, so that a few absurd rows count for no more than their share.
// All of it before the moments' first update, when there is nothing to compare with; a number within is not changed by
// a bit, and NaN stays. 10 about the mean is never absurd: it lets numbers in that have hardly varied so far, a flag,
// or the pitch of a cheetah that has not fallen over yet. The same on all ranks, whose moments are the same.
torch::Tensor Winsorize(const torch::Tensor& rows, const RunningMoments& moments);

}  // namespace skein
