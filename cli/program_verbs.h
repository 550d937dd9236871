// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "base/command/command_table.h"

namespace skein {

// The flags and verbs of a verb that another program knows; that program is asked. NotFound: skein itself knows the
// verb, or the program is not installed. Others: the program does not answer as it should.
absl::StatusOr<Command> DescribeProgramVerb(const std::string& verb);

}  // namespace skein
