// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"

// Files in a folder that all nodes see. Each says by its lock that a process lends a place for a training; the lock
// ends with the process, however that ends.
namespace skein {

// Makes and locks the file of a place; returns its descriptor, which the caller closes. Its folder is made if it is not
// there. Unavailable: another process has it. Others: it cannot be written.
absl::StatusOr<int> TakePlaceFile(const std::string& path);

// Whether a process lends the place. Removes the file if none does.
bool IsLent(const std::string& path);

// Names of the files in `folder` whose places are lent, in order. Removes the others.
std::vector<std::string> LentIn(const std::string& folder);

}  // namespace skein
