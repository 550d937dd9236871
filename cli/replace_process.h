// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"

namespace skein {

// Replaces this process by the program `name` of `folder` (execv), with one Torch thread. Returns only on failure.
// Unavailable: the program is missing. Internal: execv failed.
absl::Status ReplaceProcess(const std::string& folder, const std::string& name,
                            const std::vector<std::string>& arguments);

}  // namespace skein
