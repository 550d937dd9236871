// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace skein {

// Counts the GPUs, out of `installed` (0 = none, or unknown), that CUDA would show to a process here. `visible_devices`
// is CUDA_VISIBLE_DEVICES (nullopt: not set), a list of numbers, GPU-... or MIG-...; as in CUDA, the list ends at the
// first entry that is none of these or a number that is too large.
uint32_t CountVisibleGpus(const std::optional<std::string>& visible_devices, uint32_t installed);

// The same for this process's environment and the driver's GPUs; 0 if the learner's LibTorch has no CUDA.
uint32_t CountVisibleGpus();

}  // namespace skein
