// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "absl/status/statusor.h"

namespace skein {

// The use that a run makes of earlier checkpoints: kAuto resumes from the newest if there is one, kMust requires one,
// kNever starts afresh.
enum class ResumeMode { kAuto, kMust, kNever };

// "auto", "must", "never". InvalidArgument: another text.
absl::StatusOr<ResumeMode> ParseResumeMode(const std::string& text);
const char* ResumeModeName(ResumeMode mode);

}  // namespace skein
