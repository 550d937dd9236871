// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/types/span.h"

namespace skein {

// The count vectors of sequences: how often each key occurs, in whatever order. Kept as hashes of 64 bits; a vector
// that was never added is taken for one of n that were with a chance of n / 2^64.
// A sequence with an unknown key has no count vector here: it is never added, and never found.
class KnownCounts {
 public:
  KnownCounts() = default;
  explicit KnownCounts(absl::Span<const uint64_t> hashes) : hashes_(hashes.begin(), hashes.end()) {}

  // `classes`: of the keys, without the end. `cut`: the sequence was cut off, and is another than one that ends there.
  void Add(absl::Span<const uint32_t> classes, bool cut);
  bool Contains(absl::Span<const uint32_t> classes, bool cut) const;

  // Adds those of `other`.
  void Merge(const KnownCounts& other) { hashes_.insert(other.hashes_.begin(), other.hashes_.end()); }

  size_t size() const { return hashes_.size(); }
  std::vector<uint64_t> Sorted() const;  // The same for the same vectors, in whatever order they came.

 private:
  absl::flat_hash_set<uint64_t> hashes_;
};

}  // namespace skein
