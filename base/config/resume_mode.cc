// SPDX-License-Identifier: Apache-2.0
#include "base/config/resume_mode.h"

#include "absl/strings/str_cat.h"
#include "base/process/message_text.h"

namespace skein {

absl::StatusOr<ResumeMode> ParseResumeMode(const std::string& text) {
  for (ResumeMode mode : {ResumeMode::kAuto, ResumeMode::kMust, ResumeMode::kNever}) {
    if (text == ResumeModeName(mode)) return mode;
  }
  return absl::InvalidArgumentError(absl::StrCat("--resume: got ", Quoted(text), ", want auto, must or never"));
}

const char* ResumeModeName(ResumeMode mode) {
  switch (mode) {
    case ResumeMode::kMust:
      return "must";
    case ResumeMode::kNever:
      return "never";
    case ResumeMode::kAuto:
      break;
  }
  return "auto";
}

}  // namespace skein
