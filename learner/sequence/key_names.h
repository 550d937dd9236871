// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "skein/v1/fit.pb.h"

// Converts the keys of sequences between texts, numbers and a model's classes.
namespace skein {

// The one way to write a key: `text` itself, or of an integer its digits, which `storage` may hold. InvalidArgument: it
// is no integer; the message names neither file nor line.
absl::StatusOr<absl::string_view> CanonicalKey(v1::SequenceKeys kind, absl::string_view text, std::string* storage);

// The next key of a line, or empty; it and what is before it are removed from `line`.
absl::string_view TakeKey(absl::string_view* line);

// Numbers 0, 1, 2, ... for the keys of a file, in the order in which they are first seen. An integer has one number
// however it is written ("7", "007"). Not thread-safe.
class KeyNumbers {
 public:
  KeyNumbers(v1::SequenceKeys kind, uint32_t limit) : kind_(kind), limit_(limit) {}

  // The number of the key that `text` is. InvalidArgument: as CanonicalKey, or beyond `limit` different keys.
  absl::StatusOr<uint32_t> Number(absl::string_view text);
  const std::vector<std::string>& names() const { return names_; }  // By number.

 private:
  const v1::SequenceKeys kind_;
  const uint32_t limit_;
  std::vector<std::string> names_;
  absl::flat_hash_map<std::string, uint32_t> numbers_;
};

// The keys that a model knows.   names -> Vocabulary -> classes of the softmax
// Classes: 0 = the end of a sequence, 1 = the unknown key, 2 .. = the keys. What goes into the model is a class, too;
// the start of a sequence is the input kStart, which no model puts out.
class Vocabulary {
 public:
  static constexpr uint32_t kEnd = 0, kStart = 0, kUnknown = 1, kFirst = 2;

  Vocabulary() = default;
  // In this order; each once.
  explicit Vocabulary(std::vector<std::string> names);
  // The keys 0 .. count-1.
  static Vocabulary Integers(uint32_t count);

  uint32_t ClassOf(absl::string_view name) const;  // kUnknown: it has no such key.
  std::string NameOf(uint32_t key_class) const;    // "end" and "unknown" for the first two.
  uint32_t classes() const { return kFirst + static_cast<uint32_t>(names_.size()); }
  const std::vector<std::string>& names() const { return names_; }

 private:
  std::vector<std::string> names_;
  absl::flat_hash_map<std::string, uint32_t> classes_;
};

// Integers by value, then texts in alphabetical order.
void SortKeys(std::vector<std::string>* names);

}  // namespace skein
