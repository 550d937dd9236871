// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <torch/types.h>

#include <memory>
#include <vector>

namespace skein {

// Copies tensors from host memory to a device while the device computes: through pinned memory, on a separate stream.
// For the CPU, and in a build without CUDA, it uses Torch's own copy.   Start -> Pending -> Finish
// Not thread-safe: used only by the thread whose stream computes.
class DeviceCopier {
 public:
  explicit DeviceCopier(torch::Device device);
  ~DeviceCopier();

  // Copies in progress.
  struct Pending {
    std::vector<torch::Tensor> tensors;
    std::shared_ptr<void> copied;  // Null: the copies are complete.
  };
  // `host` may change as soon as this returns. Exception: for the CPU the result is the tensors themselves.
  Pending Start(const std::vector<torch::Tensor>& host);
  // The tensors on the device. Later work of the current stream waits for the copies; the caller does not wait.
  std::vector<torch::Tensor> Finish(Pending pending);

 private:
  struct Impl;
  const torch::Device device_;
  const std::unique_ptr<Impl> impl_;  // Null: without a stream.
};

}  // namespace skein
