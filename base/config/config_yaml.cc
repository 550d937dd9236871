// SPDX-License-Identifier: Apache-2.0
// The YAML half of config_reflection.h: parsing under restrictions. Exceptions of yaml-cpp end here.
#include <exception>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
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

// The mark of the value at `path` below `node`, where a key may be several names with dots; null if there is none.
YAML::Mark FindPath(const YAML::Node& node, absl::Span<const std::string> path) {
  if (path.empty()) return node.Mark();
  if (!node.IsMap()) return YAML::Mark::null_mark();
  for (const auto& entry : node) {
    if (!entry.first.IsScalar()) continue;
    const std::vector<std::string> key = absl::StrSplit(entry.first.Scalar(), '.');
    if (key.size() > path.size() || path.first(key.size()) != absl::MakeConstSpan(key)) continue;
    if (const YAML::Mark mark = FindPath(entry.second, path.subspan(key.size())); !mark.is_null()) return mark;
  }
  return YAML::Mark::null_mark();
}

// The mark of the first setting below `node` that `message` names by its path; null if it has none of them.
YAML::Mark FindFirst(const YAML::Node& node, absl::string_view message) {
  for (const absl::string_view word : absl::StrSplit(message, absl::ByAnyChar(" (),:;"))) {
    if (!absl::StrContains(word, '.')) continue;
    const std::vector<std::string> path = absl::StrSplit(absl::StripPrefix(word, "."), '.');
    if (const YAML::Mark mark = FindPath(node, path); !mark.is_null()) return mark;
  }
  return YAML::Mark::null_mark();
}

// Where a phase has what `message` names, else its settings. `message` goes on behind "phases[", as "0].set: ppo.lr
// ...".
YAML::Mark FindInPhases(const YAML::Node& phases, absl::string_view message) {
  const std::pair<absl::string_view, absl::string_view> parts = absl::StrSplit(message, absl::MaxSplits("].", 1));
  size_t index = 0;
  if (!phases.IsSequence() || !absl::SimpleAtoi(parts.first, &index) || index >= phases.size()) {
    return YAML::Mark::null_mark();
  }
  const YAML::Node phase = phases[index];
  absl::string_view rest = parts.second;
  if (!phase.IsMap() || !phase["set"] || !absl::ConsumePrefix(&rest, "set")) return phase.Mark();
  const YAML::Mark mark = FindFirst(phase["set"], rest);
  return mark.is_null() ? phase["set"].Mark() : mark;
}

}  // namespace

YAML::Mark FindNamed(const YAML::Node& root, const std::string& message) {
  absl::string_view rest = message;
  if (!absl::ConsumePrefix(&rest, "phases[")) return FindFirst(root, message);
  const YAML::Node phases = root.IsMap() ? root["phases"] : YAML::Node();
  return phases ? FindInPhases(phases, rest) : YAML::Mark::null_mark();
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
