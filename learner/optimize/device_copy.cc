// SPDX-License-Identifier: Apache-2.0
#include "learner/optimize/device_copy.h"

#include <torch/types.h>
#include <torch/utils.h>

#ifdef SKEIN_CUDA
#include <ATen/cuda/CUDAEvent.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>
#endif

namespace skein {

#ifdef SKEIN_CUDA

struct DeviceCopier::Impl {
  c10::cuda::CUDAStream stream;
};

DeviceCopier::DeviceCopier(torch::Device device)
    : device_(device),
      impl_(device.is_cuda() ? new Impl{c10::cuda::getStreamFromPool(/*isHighPriority=*/false, device.index())}
                             : nullptr) {}

DeviceCopier::Pending DeviceCopier::Start(const std::vector<torch::Tensor>& host) {
  Pending pending;
  if (impl_ == nullptr) {
    for (const torch::Tensor& tensor : host) pending.tensors.push_back(tensor.to(device_));
    return pending;
  }
  const torch::NoGradGuard no_grad;
  const c10::cuda::CUDAStreamGuard on_our_stream(impl_->stream);
  for (const torch::Tensor& tensor : host) {
    // The allocator of pinned memory keeps it until the copy is done.
    torch::Tensor pinned = torch::empty(tensor.sizes(), tensor.options().pinned_memory(true));
    pinned.copy_(tensor);
    pending.tensors.push_back(pinned.to(device_, /*non_blocking=*/true));
  }
  auto copied = std::make_shared<at::cuda::CUDAEvent>();
  copied->record(impl_->stream);
  pending.copied = std::move(copied);
  return pending;
}

std::vector<torch::Tensor> DeviceCopier::Finish(Pending pending) {
  if (pending.copied == nullptr) return std::move(pending.tensors);
  const c10::cuda::CUDAStream current = c10::cuda::getCurrentCUDAStream(device_.index());
  static_cast<at::cuda::CUDAEvent*>(pending.copied.get())->block(current);
  // Their memory belongs to our stream: it is not given away before the current one has used it.
  for (const torch::Tensor& tensor : pending.tensors) tensor.record_stream(current);
  return std::move(pending.tensors);
}

#else

struct DeviceCopier::Impl {};

DeviceCopier::DeviceCopier(torch::Device device) : device_(device) {}

DeviceCopier::Pending DeviceCopier::Start(const std::vector<torch::Tensor>& host) {
  Pending pending;
  for (const torch::Tensor& tensor : host) pending.tensors.push_back(tensor.to(device_));
  return pending;
}

std::vector<torch::Tensor> DeviceCopier::Finish(Pending pending) { return std::move(pending.tensors); }

#endif

DeviceCopier::~DeviceCopier() = default;

}  // namespace skein
