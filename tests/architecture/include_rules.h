// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

// Checks which files include which.   docs/architecture.md -> ParseIncludeRules -> CheckTree -> CheckIncludes, once per
// file
namespace skein::architecture {

struct IncludeRules {
  // By scope, a folder or one file: our folders (with their sub-folders) and files and the libraries below that it may
  // include besides the folder it is in. A file's own scope counts before that of its folder. A folder's scope does not
  // hold for its sub-folders: each has one of its own.
  std::map<std::string, std::vector<std::string>> allowed;
  // By library: what its headers' paths begin with. A header that fits several belongs to the longest.
  std::map<std::string, std::vector<std::string>> libraries;
};

// Reads the two tables that follow "<!-- include-rules: files -->" and "<!-- include-rules: libraries -->".
// NotFound: one of them is missing. InvalidArgument: a row without names, a name given twice, or a row that allows
// what is neither one of our folders nor a library of the second table.
absl::StatusOr<IncludeRules> ParseIncludeRules(const std::string& markdown);

// "path:line: what is wrong", one for each include of the file that breaks a rule. `path` is from the root of the tree.
std::vector<std::string> CheckIncludes(const IncludeRules& rules, const std::string& path, const std::string& text);

struct TreeCheck {
  int files = 0;  // That were looked at.
  std::vector<std::string> violations;
};
// All C and C++ files under `root`, those of tests, of build folders and of hidden folders apart.
TreeCheck CheckTree(const IncludeRules& rules, const std::string& root);

}  // namespace skein::architecture
