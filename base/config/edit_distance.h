// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace skein {

// The least number of insertions, deletions, substitutions and swaps of two neighbours that turn `from` into `to`,
// where no part is edited twice (optimal string alignment distance: Damerau 1964, Levenshtein 1966).
int EditDistance(const std::string& from, const std::string& to);

}  // namespace skein
