// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "base/config/resume_mode.h"

namespace skein {

// A run's folder, claimed for this process until its end.
class FitFolder {
 public:
  // Makes the folder if need be. With kNever what an earlier training wrote there is moved aside, to <path>.old-1 or
  // the first free number. Unavailable: another process uses it. FailedPrecondition: a run of something else is there,
  // which nothing of it is changed. PermissionDenied: a link where none may be.
  static absl::StatusOr<FitFolder> Claim(const std::string& path, ResumeMode resume);
  FitFolder() = default;
  FitFolder(FitFolder&& other) noexcept { *this = std::move(other); }
  FitFolder& operator=(FitFolder&& other) noexcept;
  ~FitFolder();

  const std::string& moved_to() const { return moved_to_; }  // Empty: nothing was moved.

 private:
  int descriptor_ = -1;  // Of the lock.
  std::string moved_to_;
};

}  // namespace skein
