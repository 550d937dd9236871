// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "absl/status/statusor.h"

namespace skein {

// What to do where a run may have checkpoints: go on from the newest if there is one, insist on one, begin anew.
enum class ResumeMode { kAuto, kMust, kNever };

// "auto", "must", "never". InvalidArgument: another text.
absl::StatusOr<ResumeMode> ParseResumeMode(const std::string& text);
const char* ResumeModeName(ResumeMode mode);

}  // namespace skein
