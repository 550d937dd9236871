// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <torch/types.h>

#include <memory>
#include <vector>

namespace skein {

// Copies tensors from host memory to a device while it computes: through pinned memory, on a stream of their own.
// For the CPU, and in a build without CUDA, they are handed over as Torch does it.   Start -> Pending -> Finish
// Not thread-safe: one thread, that of the stream that computes.
class DeviceCopier {
 public:
  explicit DeviceCopier(torch::Device device);
  ~DeviceCopier();

  // Copies under way.
  struct Pending {
    std::vector<torch::Tensor> tensors;
    std::shared_ptr<void> copied;  // Null: they are there.
  };
  // `host` may change as soon as this returns, except where the device is the CPU: then the tensors are themselves.
  Pending Start(const std::vector<torch::Tensor>& host);
  // The tensors on the device. Later work of the current stream waits for them, the caller does not.
  std::vector<torch::Tensor> Finish(Pending pending);

 private:
  struct Impl;
  const torch::Device device_;
  const std::unique_ptr<Impl> impl_;  // Null: without a stream.
};

}  // namespace skein
