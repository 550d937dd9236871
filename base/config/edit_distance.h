// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace skein {

// Levenshtein distance: the fewest insertions, deletions and substitutions that make one text of the other.
int EditDistance(const std::string& from, const std::string& to);

}  // namespace skein
