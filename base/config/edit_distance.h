// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace skein {

// Levenshtein distance: the least number of insertions, deletions and substitutions that turn `from` into `to`.
int EditDistance(const std::string& from, const std::string& to);

}  // namespace skein
