// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace skein {

// The least number of insertions, deletions, substitutions and swaps of neighbours that turn `from` into `to`, where no
// letter is edited twice (optimal string alignment).
int EditDistance(const std::string& from, const std::string& to);

}  // namespace skein
