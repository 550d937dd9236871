// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "absl/status/statusor.h"

namespace skein {

// Makes the folder of a sweep ready for it. `resume`: auto; must = there is a journal (NotFound: there is none); never
// = an old folder is moved aside (Unavailable: it is in use). Returns where the old one is now, or nothing.
// PermissionDenied: it cannot be made or moved.
absl::StatusOr<std::string> PrepareSweepFolder(const std::string& folder, const std::string& resume);

}  // namespace skein
