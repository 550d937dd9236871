// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <torch/types.h>

#include "skein/v1/config.pb.h"

namespace skein {

// Element type of forward and backward passes, from learner.precision.
inline torch::ScalarType TrainingPrecision(const v1::LearnerConfig& config) {
  return config.precision() == v1::PRECISION_BF16 ? torch::kBFloat16 : torch::kFloat32;
}

// A scope in which this thread's matrix products on `device` run in `precision` (float32: no change). Parameters keep
// their type. The outermost destructor clears the cast cache. Guards of one thread must end in reverse order.
class ScopedAutocast {
 public:
  ScopedAutocast(torch::Device device, torch::ScalarType precision);
  ~ScopedAutocast();
  ScopedAutocast(const ScopedAutocast&) = delete;
  ScopedAutocast& operator=(const ScopedAutocast&) = delete;

 private:
  const c10::DeviceType device_;
  const bool active_;
  bool was_enabled_ = false;
  torch::ScalarType precision_before_ = torch::kFloat32;
};

}  // namespace skein
