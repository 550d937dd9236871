// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "absl/status/status.h"

namespace skein {

// The error of a system call on a file or folder, as "WHAT: reason".
// NotFound: nothing there. PermissionDenied: not allowed, read-only. ResourceExhausted: disk, quota, memory or
// descriptors. InvalidArgument: the path itself. DataLoss: all else. REQUIRES: error_number != 0.
absl::Status SystemError(int error_number, const std::string& what);

}  // namespace skein
