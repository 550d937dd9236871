// SPDX-License-Identifier: Apache-2.0
#include "env/uav/tensor_form.h"

#include "absl/strings/str_cat.h"

namespace skein {

absl::StatusOr<UavTask> FindTensorForm(const std::string& env_id) {
  if (env_id == "UavNavigate-v0") return UavTask::kNavigate;
  if (env_id == "UavCover-v0") return UavTask::kCover;
  return absl::InvalidArgumentError(
      absl::StrCat("sync.mode on_device steps environments as tensors on the learner's device, and ", env_id,
                   " has no such form; UavCover-v0 and UavNavigate-v0 have"));
}

}  // namespace skein
