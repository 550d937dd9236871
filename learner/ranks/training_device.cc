// SPDX-License-Identifier: Apache-2.0
#include "learner/ranks/training_device.h"

#include <torch/cuda.h>
#include <torch/types.h>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"

namespace skein {

absl::StatusOr<torch::Device> ParseTrainingDevice(const std::string& setting, int local_rank, int gpus,
                                                  const std::string& name) {
  const auto gpu = [](int number) { return torch::Device(torch::kCUDA, static_cast<c10::DeviceIndex>(number)); };
  if (setting == "cpu" || (setting == "auto" && gpus == 0)) return torch::Device(torch::kCPU);
  if ((setting == "auto" || setting == "cuda") && gpus > 0) return gpu(local_rank % gpus);

  absl::string_view digits = setting;
  int number = 0;
  const bool numbered = absl::ConsumePrefix(&digits, "cuda:") && !digits.empty() && absl::ascii_isdigit(digits[0]) &&
                        absl::SimpleAtoi(digits, &number);
  if (!numbered && setting != "cuda") {
    return absl::InvalidArgumentError(absl::StrCat(name, ": got \"", setting, "\", want auto, cpu, cuda or cuda:N"));
  }
  if (number < gpus) return gpu(number);
  return absl::FailedPreconditionError(
      absl::StrCat(name, ": got \"", setting, "\", but ",
                   gpus == 0 ? "Torch sees no GPU here" : absl::StrCat("there are only cuda:0 to cuda:", gpus - 1),
                   "; say auto, or cpu"));
}

absl::StatusOr<torch::Device> ParseTrainingDevice(const std::string& setting, int local_rank, const std::string& name) {
  const int gpus = torch::cuda::is_available() ? static_cast<int>(torch::cuda::device_count()) : 0;
  return ParseTrainingDevice(setting, local_rank, gpus, name);
}

}  // namespace skein
