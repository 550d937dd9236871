// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdio>

namespace skein {

// Columns of the terminal behind `out`; 0 if `out` is not a terminal or the terminal cannot move its cursor.
int TerminalWidth(std::FILE* out);

}  // namespace skein
