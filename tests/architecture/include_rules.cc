// SPDX-License-Identifier: Apache-2.0
#include "tests/architecture/include_rules.h"

#include <algorithm>
#include <filesystem>
#include <optional>
#include <regex>
#include <set>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/process/file.h"

namespace skein::architecture {
namespace {

namespace fs = std::filesystem;
using Table = std::map<std::string, std::vector<std::string>>;

std::vector<std::string> Lines(const std::string& text) { return absl::StrSplit(text, '\n'); }

std::string TopFolder(const std::string& path) { return path.substr(0, path.find('/')); }

std::string FolderOf(const std::string& path) { return path.substr(0, path.rfind('/')); }

bool IsWithin(const std::string& path, const std::string& scope) {
  return path == scope || absl::StartsWith(path, scope + "/");
}

// The words of a table's cell that stand in `backticks`.
std::vector<std::string> CodeWords(absl::string_view cell) {
  const std::vector<std::string> pieces = absl::StrSplit(cell, '`');
  std::vector<std::string> words;
  for (size_t i = 1; i + 1 < pieces.size(); i += 2) words.push_back(pieces[i]);
  return words;
}

// The table after `marker`: name in the first cell, words in the second.
absl::StatusOr<Table> ParseTable(const std::string& markdown, const std::string& marker) {
  const std::vector<std::string> lines = Lines(markdown);
  auto line = std::find(lines.begin(), lines.end(), marker);
  if (line == lines.end()) return absl::NotFoundError(absl::StrCat("no line \"", marker, "\""));
  ++line;
  while (line != lines.end() && line->empty()) ++line;
  Table table;
  for (int row = 0; line != lines.end() && absl::StartsWith(*line, "|"); ++line, ++row) {
    if (row < 2) continue;  // Titles and rule.
    const std::vector<std::string> cells = absl::StrSplit(*line, '|');
    const std::vector<std::string> name = cells.size() > 2 ? CodeWords(cells[1]) : std::vector<std::string>();
    if (name.size() != 1) return absl::InvalidArgumentError(absl::StrCat("no `name` in the first cell of: ", *line));
    if (!table.emplace(name[0], CodeWords(cells[2])).second) {
      return absl::InvalidArgumentError(absl::StrCat(name[0], " has two rows"));
    }
  }
  if (table.empty()) return absl::NotFoundError(absl::StrCat("no table after \"", marker, "\""));
  return table;
}

std::set<std::string> OurFolders(const IncludeRules& rules) {
  std::set<std::string> folders;
  for (const auto& [scope, allowed] : rules.allowed) folders.insert(TopFolder(scope));
  return folders;
}

// The longest of `names` for which `fits`.
template <typename Names, typename Fits>
const typename Names::value_type* Longest(const Names& names, Fits fits) {
  const typename Names::value_type* best = nullptr;
  for (const auto& name : names) {
    if (fits(name.first) && (best == nullptr || name.first.size() > best->first.size())) best = &name;
  }
  return best;
}

// The library that `header` belongs to, if the rules know it.
std::optional<std::string> LibraryOf(const IncludeRules& rules, const std::string& header) {
  std::map<std::string, std::string> by_prefix;
  for (const auto& [library, prefixes] : rules.libraries) {
    for (const std::string& prefix : prefixes) by_prefix[prefix] = library;
  }
  const auto* found = Longest(by_prefix, [&](const std::string& prefix) { return absl::StartsWith(header, prefix); });
  if (found == nullptr) return std::nullopt;
  return found->second;
}

// What is wrong with the include of `header`, or empty.
std::string Problem(const IncludeRules& rules, const std::string& path, const std::string& header, bool quoted) {
  const auto* rule = Longest(rules.allowed, [&](const std::string& scope) { return IsWithin(path, scope); });
  if (rule == nullptr || (rule->first != path && rule->first != FolderOf(path))) {
    return absl::StrCat(FolderOf(path), " has no row in the table of docs/architecture.md");
  }
  const std::vector<std::string>& allowed = rule->second;
  const std::set<std::string> folders = OurFolders(rules);
  const bool message = absl::StartsWith(header, "skein/v1/") || absl::StartsWith(header, "skein/env/v1/");
  const bool installed = !message && absl::StartsWith(header, "skein/");
  const std::string target = message ? "proto/" + header : installed ? "include/" + header : header;
  if (absl::StrContains(target, ".."))
    return absl::StrCat("\"", header, "\": write the path from the root of the tree");
  if (header.find('/') != std::string::npos && folders.count(TopFolder(target)) > 0) {
    if (FolderOf(target) == FolderOf(path)) return "";
    for (const std::string& name : allowed) {
      if (IsWithin(target, name)) return "";
    }
    return absl::StrCat(rule->first, " may not include ", header);
  }
  if (const auto library = LibraryOf(rules, header)) {
    if (std::find(allowed.begin(), allowed.end(), *library) != allowed.end()) return "";
    return absl::StrCat(rule->first, " may not include ", header, " (", *library, ")");
  }
  if (TopFolder(header) == "tests") return absl::StrCat(rule->first, " may not include tests");
  if (quoted && header.find('/') == std::string::npos) {
    return absl::StrCat("\"", header, "\": write the path from the root of the tree");
  }
  return "";
}

bool IsSource(const fs::path& path) {
  static const auto* const kExtensions = new std::set<std::string>{".h", ".hh", ".hpp", ".c", ".cc", ".cpp", ".cu"};
  return kExtensions->count(path.extension().string()) > 0;
}

// Folders at the top of the tree that hold nothing of the product.
bool IsApart(const std::string& folder) {
  return folder == "tests" || folder == "runs" || absl::StartsWith(folder, ".") || absl::StartsWith(folder, "build");
}

}  // namespace

absl::StatusOr<IncludeRules> ParseIncludeRules(const std::string& markdown) {
  const auto files = ParseTable(markdown, "<!-- include-rules: files -->");
  if (!files.ok()) return files.status();
  const auto libraries = ParseTable(markdown, "<!-- include-rules: libraries -->");
  if (!libraries.ok()) return libraries.status();
  IncludeRules rules{*files, *libraries};
  const std::set<std::string> folders = OurFolders(rules);
  for (const auto& [library, prefixes] : rules.libraries) {
    if (prefixes.empty()) return absl::InvalidArgumentError(absl::StrCat("library ", library, " has no headers"));
  }
  for (const auto& [scope, allowed] : rules.allowed) {
    for (const std::string& name : allowed) {
      if (folders.count(TopFolder(name)) > 0 || rules.libraries.count(name) > 0) continue;
      return absl::InvalidArgumentError(absl::StrCat(scope, " allows ", name, ", which is no folder and no library"));
    }
  }
  return rules;
}

std::vector<std::string> CheckIncludes(const IncludeRules& rules, const std::string& path, const std::string& text) {
  static const auto* const kInclude = new std::regex(R"(\s*#\s*include\s*([<"])([^>"]+)[>"].*)");
  std::vector<std::string> violations;
  int number = 0;
  for (const std::string& line : Lines(text)) {
    ++number;
    const std::string directive(absl::StripLeadingAsciiWhitespace(line));
    if (!absl::StartsWith(directive, "#") || !absl::StrContains(directive, "include")) continue;
    std::smatch match;
    if (!std::regex_match(line, match, *kInclude)) continue;
    const std::string problem = Problem(rules, path, match[2].str(), match[1].str() == "\"");
    if (!problem.empty()) violations.push_back(absl::StrCat(path, ":", number, ": ", problem));
  }
  return violations;
}

TreeCheck CheckTree(const IncludeRules& rules, const std::string& root) {
  TreeCheck check;
  for (const fs::directory_entry& top : fs::directory_iterator(root)) {
    if (!top.is_directory() || IsApart(top.path().filename())) continue;
    for (const fs::directory_entry& entry : fs::recursive_directory_iterator(top.path())) {
      if (!entry.is_regular_file() || !IsSource(entry.path())) continue;
      const std::string path = fs::relative(entry.path(), root);
      const auto text = ReadFile(entry.path());
      ++check.files;
      if (!text.ok()) {
        check.violations.push_back(absl::StrCat(path, ": ", text.status().message()));
        continue;
      }
      for (std::string& violation : CheckIncludes(rules, path, *text)) check.violations.push_back(std::move(violation));
    }
  }
  std::sort(check.violations.begin(), check.violations.end());
  return check;
}

}  // namespace skein::architecture
