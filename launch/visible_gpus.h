// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace skein {

// The GPUs, out of `installed` (0 = none, or unknown), that CUDA would show to a process here, as CUDA_VISIBLE_DEVICES
// names them. `visible_devices` is that variable (nullopt: not set), a list of numbers, GPU-... or MIG-...; as in CUDA,
// the list ends at the first entry that is none of these or a number that is too large.
std::vector<std::string> VisibleGpus(const std::optional<std::string>& visible_devices, uint32_t installed);

// The same for this process's environment and the driver's GPUs; none if the learner's LibTorch has no CUDA.
std::vector<std::string> VisibleGpus();
uint32_t CountVisibleGpus();

}  // namespace skein
