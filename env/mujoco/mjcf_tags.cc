// SPDX-License-Identifier: Apache-2.0
#include "env/mujoco/mjcf_tags.h"

#include "absl/strings/ascii.h"

namespace skein {
namespace {

class Scanner {
 public:
  explicit Scanner(absl::string_view text) : text_(text) {}

  std::optional<std::vector<MjcfTag>> Read() {
    std::vector<MjcfTag> tags;
    for (at_ = text_.find('<'); at_ != absl::string_view::npos; at_ = text_.find('<', at_)) {
      if (Begins("<!")) return std::nullopt;
      if (Begins("<?")) {
        at_ = text_.find("?>", at_);
        if (at_ == absl::string_view::npos) return std::nullopt;
        continue;
      }
      if (!ReadTag(&tags.emplace_back())) return std::nullopt;
    }
    return tags;
  }

 private:
  bool ReadTag(MjcfTag* tag) {
    tag->begin = at_++;
    SkipSpace();  // The parser allows it here.
    tag->opens = !Take('/');
    SkipSpace();
    tag->element = Name();
    if (tag->element.empty()) return false;
    for (SkipSpace(); !Take('>'); SkipSpace()) {
      if (Take('/')) {
        if (!tag->opens || !Take('>')) return false;
        tag->closed = true;
        break;
      }
      const absl::string_view name = Name();
      SkipSpace();
      if (name.empty() || !Take('=')) return false;
      SkipSpace();
      const char quote = at_ < text_.size() ? text_[at_] : '\0';
      if (quote != '"' && quote != '\'') return false;
      const size_t close = text_.find(quote, at_ + 1);
      if (close == absl::string_view::npos) return false;
      tag->attributes.emplace_back(name, text_.substr(at_ + 1, close - at_ - 1));
      at_ = close + 1;
    }
    tag->end = at_;
    return true;
  }

  bool Begins(absl::string_view with) const { return text_.substr(at_, with.size()) == with; }
  bool Take(char c) {
    if (at_ >= text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }
  void SkipSpace() {
    while (at_ < text_.size() && absl::ascii_isspace(static_cast<unsigned char>(text_[at_]))) ++at_;
  }
  absl::string_view Name() {
    const size_t begin = at_;
    while (at_ < text_.size() && !absl::ascii_isspace(static_cast<unsigned char>(text_[at_])) &&
           absl::string_view("<>/='\"").find(text_[at_]) == absl::string_view::npos) {
      ++at_;
    }
    return text_.substr(begin, at_ - begin);
  }

  const absl::string_view text_;
  size_t at_ = 0;
};

}  // namespace

std::optional<std::vector<MjcfTag>> ReadMjcfTags(absl::string_view text) { return Scanner(text).Read(); }

}  // namespace skein
