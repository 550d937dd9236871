// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "base/command/command_table.h"

namespace skein {

// The manual page of a program in section 1, as man(7) source: synopsis, each verb with its flags, exit codes, other
// pages. Hidden verbs are left out.
std::string FormatManPage(const Command& command);

}  // namespace skein
