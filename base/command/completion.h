// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "base/command/command_table.h"

namespace skein {

// A script that teaches `shell` (bash, zsh or fish) to complete the verbs, flags and choices of a program; file names
// where a flag takes a FILE, a DIR or any text; folders in --runs-dir, by default runs, where an argument is a RUN.
// Hidden verbs are left out. InvalidArgument: another shell.
absl::StatusOr<std::string> FormatCompletion(const Command& command, const std::string& shell);

}  // namespace skein
