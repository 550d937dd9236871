// SPDX-License-Identifier: Apache-2.0
// The YAML half of config_reflection.h: parsing under restrictions. Exceptions of yaml-cpp end here.
#include <exception>
#include <sstream>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/types/span.h"
#include "base/config/config_reflection.h"
#include "yaml-cpp/eventhandler.h"

namespace skein::config_reflection {
namespace {

constexpr size_t kMaxTextBytes = 1 << 20;

// Looks for what a YAML::Node does not tell. The first problem is kept.
class RestrictionChecker : public YAML::EventHandler {
 public:
  bool found() const { return !problem_.empty(); }
  const std::string& problem() const { return problem_; }
  const YAML::Mark& mark() const { return mark_; }

  void OnDocumentStart(const YAML::Mark&) override {}
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override { Check(mark, "", anchor); }
  void OnAlias(const YAML::Mark& mark, YAML::anchor_t) override { Keep(mark, "aliases are not supported"); }
  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor, const std::string&) override {
    Check(mark, tag, anchor);
  }
  void OnSequenceStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value) override {
    Check(mark, tag, anchor);
  }
  void OnSequenceEnd() override {}
  void OnMapStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value) override {
    Check(mark, tag, anchor);
  }
  void OnMapEnd() override {}

 private:
  void Check(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor) {
    if (anchor != 0) Keep(mark, "anchors and aliases are not supported");
    // "?" and "!" are what the parser itself says of plain and of quoted scalars.
    if (!tag.empty() && tag != "?" && tag != "!") Keep(mark, "tags are not supported");
  }

  void Keep(const YAML::Mark& mark, const std::string& problem) {
    if (found()) return;
    mark_ = mark;
    problem_ = problem;
  }

  YAML::Mark mark_;
  std::string problem_;
};

absl::StatusOr<YAML::Node> ParseOrThrow(const std::string& text, const Source& source) {
  std::istringstream stream(text);
  YAML::Parser parser(stream);
  RestrictionChecker checker;
  const bool any = parser.HandleNextDocument(checker);
  if (checker.found()) return source.Error(checker.mark(), checker.problem());
  if (any && parser.HandleNextDocument(checker)) {
    return source.Error(YAML::Mark::null_mark(), "more than one YAML document");
  }
  return YAML::Load(text);
}

// The mark of the value at `path` below `node`; null if there is none.
YAML::Mark FindPath(const YAML::Node& node, absl::Span<const std::string> path) {
  if (path.empty()) return node.Mark();
  if (!node.IsMap()) return YAML::Mark::null_mark();
  for (const auto& entry : node) {
    if (entry.first.IsScalar() && entry.first.Scalar() == path.front()) return FindPath(entry.second, path.subspan(1));
  }
  return YAML::Mark::null_mark();
}

}  // namespace

YAML::Mark FindNamed(const YAML::Node& root, const std::string& message) {
  for (const absl::string_view word : absl::StrSplit(message, absl::ByAnyChar(" (),:;"))) {
    if (!absl::StrContains(word, '.')) continue;
    const std::vector<std::string> path = absl::StrSplit(word, '.');
    if (const YAML::Mark mark = FindPath(root, path); !mark.is_null()) return mark;
  }
  return YAML::Mark::null_mark();
}

absl::Status Source::Error(const YAML::Mark& mark, const std::string& message) const {
  if (!has_lines || mark.is_null()) return absl::InvalidArgumentError(absl::StrCat(name, ": ", message));
  return absl::InvalidArgumentError(absl::StrCat(name, ":", mark.line + 1, ":", mark.column + 1, ": ", message));
}

absl::StatusOr<YAML::Node> ParseYaml(const std::string& text, const Source& source) {
  if (text.size() > kMaxTextBytes) {
    return absl::InvalidArgumentError(
        absl::StrCat(source.name, ": ", text.size(), " bytes, at most ", kMaxTextBytes, " are read"));
  }
  try {
    return ParseOrThrow(text, source);
  } catch (const YAML::Exception& error) {
    return source.Error(error.mark, error.msg);
  } catch (const std::exception& error) {
    return source.Error(YAML::Mark::null_mark(), error.what());
  }
}

}  // namespace skein::config_reflection
