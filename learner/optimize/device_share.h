// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <torch/types.h>

namespace skein {

// Limits this process from now on to `share`, 0-1, of the memory of a GPU: beyond that Torch's allocator fails as it
// does when the GPU has no more. Kernels that libraries load, and what CUDA itself needs, do not count. Nothing to do
// on a CPU.
void LimitDeviceMemory(torch::Device device, double share);

}  // namespace skein
