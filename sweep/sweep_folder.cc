// SPDX-License-Identifier: Apache-2.0
#include "sweep/sweep_folder.h"

#include <filesystem>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "sweep/journal.h"

namespace skein {

absl::StatusOr<std::string> PrepareSweepFolder(const std::string& folder, const std::string& resume) {
  namespace fs = std::filesystem;
  const std::string journal = folder + "/journal.log";
  std::string aside;
  std::error_code error;
  if (resume == "must" && !fs::exists(journal, error)) {
    return absl::NotFoundError(absl::StrCat(journal, ": no sweep to go on with"));
  }
  if (resume == "never" && fs::exists(folder, error)) {
    // No other sweep may be using it.
    if (auto old = Journal::Open(journal); !old.ok() && absl::IsUnavailable(old.status())) return old.status();
    for (int n = 1; aside.empty() || fs::exists(aside, error); ++n) aside = absl::StrCat(folder, ".old-", n);
    fs::rename(folder, aside, error);
    if (error) return absl::PermissionDeniedError(absl::StrCat("cannot move aside ", folder, ": ", error.message()));
  }
  fs::create_directories(folder + "/log", error);
  if (error) return absl::PermissionDeniedError(absl::StrCat("cannot make ", folder, "/log: ", error.message()));
  return aside;
}

}  // namespace skein
