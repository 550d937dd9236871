// SPDX-License-Identifier: Apache-2.0
#include "learner/sequence/key_names.h"

#include <algorithm>
#include <limits>
#include <tuple>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "base/process/message_text.h"

namespace skein {
namespace {

bool IsDigit(char c) { return absl::ascii_isdigit(static_cast<unsigned char>(c)); }

// Of no more than nine digits, so that it fits into 32 bits.
bool IsPlainInteger(absl::string_view text) {
  if (text.empty() || text.size() > 9 || (text[0] == '0' && text.size() > 1)) return false;
  return std::all_of(text.begin(), text.end(), IsDigit);
}

}  // namespace

absl::StatusOr<absl::string_view> CanonicalKey(v1::SequenceKeys kind, absl::string_view text, std::string* storage) {
  if (kind != v1::SEQUENCE_KEYS_INTEGERS || IsPlainInteger(text)) return text;
  uint32_t value = 0;
  if (!absl::SimpleAtoi(text, &value)) {
    if (std::all_of(text.begin(), text.end(), IsDigit)) {
      return absl::InvalidArgumentError(absl::StrCat(Quoted(text), " is no key: whole numbers go up to ",
                                                     std::numeric_limits<uint32_t>::max(),
                                                     "; for greater ones set data.keys to tokens"));
    }
    return absl::InvalidArgumentError(absl::StrCat(
        Quoted(text), " is no key: want whole numbers from 0 on; for keys that are texts set data.keys to tokens"));
  }
  *storage = absl::StrCat(value);
  return *storage;
}

absl::string_view TakeKey(absl::string_view* line) {
  const auto blank = [](char c) { return absl::ascii_isspace(static_cast<unsigned char>(c)); };
  size_t begin = 0;
  while (begin < line->size() && blank((*line)[begin])) ++begin;
  size_t end = begin;
  while (end < line->size() && !blank((*line)[end])) ++end;
  const absl::string_view key = line->substr(begin, end - begin);
  line->remove_prefix(end);
  return key;
}

absl::StatusOr<uint32_t> KeyNumbers::Number(absl::string_view key) {
  std::string storage;
  const auto canonical = CanonicalKey(kind_, key, &storage);
  if (!canonical.ok()) return canonical.status();
  const absl::string_view text = *canonical;
  if (const auto found = numbers_.find(text); found != numbers_.end()) return found->second;
  if (names_.size() >= limit_) {
    return absl::InvalidArgumentError(
        absl::StrCat(Quoted(text), " is one more than ", limit_,
                     " different keys (model.max_vocabulary); are these messages instead of keys?"));
  }
  const auto number = static_cast<uint32_t>(names_.size());
  names_.emplace_back(text);
  numbers_.emplace(names_.back(), number);
  return number;
}

Vocabulary::Vocabulary(std::vector<std::string> names) : names_(std::move(names)) {
  for (size_t i = 0; i < names_.size(); ++i) classes_.emplace(names_[i], kFirst + static_cast<uint32_t>(i));
}

Vocabulary Vocabulary::Integers(uint32_t count) {
  std::vector<std::string> names;
  names.reserve(count);
  for (uint32_t key = 0; key < count; ++key) names.push_back(absl::StrCat(key));
  return Vocabulary(std::move(names));
}

uint32_t Vocabulary::ClassOf(absl::string_view name) const {
  const auto found = classes_.find(name);
  return found == classes_.end() ? kUnknown : found->second;
}

std::string Vocabulary::NameOf(uint32_t key_class) const {
  if (key_class == kEnd) return "end";
  if (key_class == kUnknown) return "unknown";
  return names_[key_class - kFirst];
}

void SortKeys(std::vector<std::string>* names) {
  const auto rank = [](const std::string& name) {
    uint32_t value = 0;
    const bool integer = absl::SimpleAtoi(name, &value);
    return std::make_tuple(!integer, value);
  };
  std::sort(names->begin(), names->end(), [&](const std::string& a, const std::string& b) {
    return std::make_tuple(rank(a), std::cref(a)) < std::make_tuple(rank(b), std::cref(b));
  });
}

}  // namespace skein
