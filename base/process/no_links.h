// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "absl/status/statusor.h"

// Opening files and making folders where a symbolic link could lead anywhere, e.g. in a run's folder. A link that is
// the path itself is refused; the way there is the caller's.
namespace skein {

// PermissionDenied: `path` is a symbolic link.
absl::Status LinkError(const std::string& path);

// Opens a regular file to append to it, and makes it if there is none. Does not wait for the reader of a pipe. The
// caller closes the descriptor. PermissionDenied: it is a symbolic link or no regular file. Others as
// WriteFileSynced().
absl::StatusOr<int> OpenForAppend(const std::string& path);

// Makes the folder `path`, and those above it that are missing, and syncs the folder that each is in. One that is there
// is left as it is. PermissionDenied: `path` is a symbolic link or no folder, or may not be made.
absl::Status MakeFolder(const std::string& path);

// Whether `path` still names the file that was opened as `fd`, and is no link. A lock on a file that was deleted
// between open() and flock() protects nothing.
bool IsFileAt(int fd, const std::string& path);

}  // namespace skein
