// SPDX-License-Identifier: Apache-2.0
#include "learner/optimize/autocast.h"

#include <ATen/autocast_mode.h>
#include <torch/types.h>
#include <torch/version.h>

namespace skein {
namespace {

namespace autocast = at::autocast;

// Since 2.4 one function for all devices; before, one for each.
#if TORCH_VERSION_MAJOR > 2 || (TORCH_VERSION_MAJOR == 2 && TORCH_VERSION_MINOR >= 4)
bool IsEnabled(c10::DeviceType device) { return autocast::is_autocast_enabled(device); }
torch::ScalarType Precision(c10::DeviceType device) { return autocast::get_autocast_dtype(device); }
void Set(c10::DeviceType device, bool enabled, torch::ScalarType precision) {
  autocast::set_autocast_dtype(device, precision);
  autocast::set_autocast_enabled(device, enabled);
}
#else
bool IsEnabled(c10::DeviceType device) {
  return device == torch::kCPU ? autocast::is_cpu_enabled() : autocast::is_enabled();
}
torch::ScalarType Precision(c10::DeviceType device) {
  return device == torch::kCPU ? autocast::get_autocast_cpu_dtype() : autocast::get_autocast_gpu_dtype();
}
void Set(c10::DeviceType device, bool enabled, torch::ScalarType precision) {
  if (device == torch::kCPU) {
    autocast::set_autocast_cpu_dtype(precision);
    autocast::set_cpu_enabled(enabled);
  } else {
    autocast::set_autocast_gpu_dtype(precision);
    autocast::set_enabled(enabled);
  }
}
#endif

}  // namespace

ScopedAutocast::ScopedAutocast(torch::Device device, torch::ScalarType precision)
    : device_(device.type()), active_(precision != torch::kFloat32) {
  if (!active_) return;
  was_enabled_ = IsEnabled(device_);
  precision_before_ = Precision(device_);
  autocast::increment_nesting();
  Set(device_, true, precision);
}

ScopedAutocast::~ScopedAutocast() {
  if (!active_) return;
  if (autocast::decrement_nesting() == 0) autocast::clear_cache();
  Set(device_, was_enabled_, precision_before_);
}

}  // namespace skein
