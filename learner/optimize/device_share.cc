// SPDX-License-Identifier: Apache-2.0
#include "learner/optimize/device_share.h"

#ifdef SKEIN_CUDA
#include <c10/cuda/CUDACachingAllocator.h>
#include <torch/cuda.h>
#endif

namespace skein {

void LimitDeviceMemory(torch::Device device, double share) {
#ifdef SKEIN_CUDA
  if (!device.is_cuda() || share >= 1) return;
  torch::cuda::synchronize(device.index());  // The allocator is there once the device is.
  c10::cuda::CUDACachingAllocator::setMemoryFraction(share, device.index());
#else
  static_cast<void>(device);
  static_cast<void>(share);
#endif
}

}  // namespace skein
