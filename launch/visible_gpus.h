// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace skein {

// How many GPUs CUDA would show to a process here, of `installed` ones (0 = none, or not known).
// `visible_devices` is CUDA_VISIBLE_DEVICES (nullopt: not set), a list of numbers, GPU-... or MIG-...; as for CUDA the
// first entry that is none of these, or a number that is too large, ends it.
uint32_t CountVisibleGpus(const std::optional<std::string>& visible_devices, uint32_t installed);

// Of this process's environment and the driver's list; 0 if the learner was built with a LibTorch that has no CUDA.
uint32_t CountVisibleGpus();

}  // namespace skein
