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

// Bytes of memory of each GPU that such a process would see. Empty: not known, since the installed ones differ, one
// does not tell its memory, or an instance of MIG is among them.
std::vector<uint64_t> VisibleGpuMemory(const std::optional<std::string>& visible_devices,
                                       const std::vector<std::optional<uint64_t>>& installed);
// The same of the driver's GPUs.
std::vector<uint64_t> VisibleGpuMemory(const std::optional<std::string>& visible_devices);

// VisibleGpus() for this process's environment and the driver's GPUs; none if the learner's LibTorch has no CUDA.
std::vector<std::string> VisibleGpus();
uint32_t CountVisibleGpus();

}  // namespace skein
