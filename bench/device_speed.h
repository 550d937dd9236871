// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "bench/statistics.h"

namespace skein {

// Measures the upper limits of a training device: large matrix products, and copies of its memory. The header does not
// include Torch. {"device": "cuda:0", "fp32_flops": products of float32 matrices, 2 n^3 each, a second,
// "copy_bytes_per_second": bytes read and written}; on a GPU also "tf32_flops" and "bf16_flops". `device`: as
// learner.device. `duration`: of each measurement. On the CPU: `threads` Torch threads. InvalidArgument,
// FailedPrecondition: as ParseTrainingDevice. Internal: Torch failed.
absl::StatusOr<Json> MeasureDevice(const std::string& device, int threads, absl::Duration duration);

// The node's GPUs as NVML knows them: [{"name", "memory_bytes"}]; none: an empty list.
Json ListGpus();

}  // namespace skein
