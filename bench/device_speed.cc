// SPDX-License-Identifier: Apache-2.0
#include "bench/device_speed.h"

#include <ATen/Context.h>
#include <torch/cuda.h>
#include <torch/types.h>
#include <torch/utils.h>

#include <cstdint>

#include "absl/strings/str_cat.h"
#include "base/process/clock.h"
#include "base/telemetry/gpu_monitor.h"
#include "learner/ranks/training_device.h"

namespace skein {
namespace {

constexpr int64_t kSideOnGpu = 8192, kSideOnCpu = 1024;
constexpr int64_t kCopiedOnGpu = int64_t{1} << 28, kCopiedOnCpu = int64_t{1} << 25;  // Numbers.

// How often a second `work` can be done.
template <typename Work>
double Rate(const torch::Device& device, absl::Duration duration, const Work& work) {
  const auto wait = [&device] {
    if (device.is_cuda()) torch::cuda::synchronize(device.index());
  };
  work();  // What a device does only once.
  wait();
  int64_t done = 0;
  const absl::Duration begin = MonotonicNow();
  absl::Duration now = begin;
  for (int64_t at_once = 1; now - begin < duration; at_once *= 2) {
    for (int64_t i = 0; i < at_once; ++i) work();
    wait();
    done += at_once;
    now = MonotonicNow();
  }
  return static_cast<double>(done) / absl::ToDoubleSeconds(now - begin);
}

double ProductFlops(const torch::Device& device, torch::ScalarType type, absl::Duration duration) {
  const int64_t side = device.is_cuda() ? kSideOnGpu : kSideOnCpu;
  const auto options = torch::TensorOptions(type).device(device);
  const torch::Tensor a = torch::ones({side, side}, options), b = torch::ones({side, side}, options);
  torch::Tensor product = torch::empty({side, side}, options);
  const double n = static_cast<double>(side);
  return 2 * n * n * n * Rate(device, duration, [&] { torch::mm_out(product, a, b); });
}

}  // namespace

absl::StatusOr<Json> MeasureDevice(const std::string& device, int threads, absl::Duration duration) {
  const int threads_before = at::get_num_threads();
  const bool tf32_before = at::globalContext().allowTF32CuBLAS();
  const auto put_back = [&] {
    at::set_num_threads(threads_before);
    at::globalContext().setAllowTF32CuBLAS(tf32_before);
  };
  try {
    const torch::NoGradGuard no_grad;
    const auto where = ParseTrainingDevice(device, 0);
    if (!where.ok()) return where.status();
    at::set_num_threads(threads);
    Json speed = {{"device", where->str()}};
    at::globalContext().setAllowTF32CuBLAS(false);
    speed["fp32_flops"] = ProductFlops(*where, torch::kFloat32, duration);
    if (where->is_cuda()) {
      at::globalContext().setAllowTF32CuBLAS(true);
      speed["tf32_flops"] = ProductFlops(*where, torch::kFloat32, duration);
      speed["bf16_flops"] = ProductFlops(*where, torch::kBFloat16, duration);
    }
    const int64_t numbers = where->is_cuda() ? kCopiedOnGpu : kCopiedOnCpu;
    const torch::Tensor from = torch::ones({numbers}, torch::TensorOptions(torch::kFloat32).device(*where));
    torch::Tensor to = torch::empty_like(from);
    const double bytes = 2.0 * sizeof(float) * static_cast<double>(numbers);
    speed["copy_bytes_per_second"] = bytes * Rate(*where, duration, [&] { to.copy_(from); });
    put_back();
    return speed;
  } catch (const std::exception& error) {
    put_back();
    return absl::InternalError(absl::StrCat("Torch failed while measuring ", device, ": ", error.what()));
  }
}

Json ListGpus() {
  Json gpus = Json::array();
  const auto monitor = GpuMonitor::Open(MonotonicNow());
  if (!monitor.ok()) return gpus;
  const std::vector<GpuSample> samples = (*monitor)->Sample(MonotonicNow());
  for (size_t i = 0; i < samples.size(); ++i) {
    gpus.push_back({{"name", (*monitor)->gpus()[i].name}});
    if (samples[i].memory_total_bytes) gpus.back()["memory_bytes"] = *samples[i].memory_total_bytes;
  }
  return gpus;
}

}  // namespace skein
