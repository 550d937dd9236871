// SPDX-License-Identifier: Apache-2.0
#include "learner/sequence/known_counts.h"

#include <xxhash.h>

#include <algorithm>
#include <optional>

#include "learner/sequence/key_names.h"

namespace skein {
namespace {

// Of the sorted classes, which are the same for the same counts. Nothing if one is unknown.
std::optional<uint64_t> HashOf(absl::Span<const uint32_t> classes, bool cut) {
  std::vector<uint32_t> sorted(classes.begin(), classes.end());
  std::sort(sorted.begin(), sorted.end());
  if (std::binary_search(sorted.begin(), sorted.end(), Vocabulary::kUnknown)) return std::nullopt;
  return XXH3_64bits_withSeed(sorted.data(), sorted.size() * sizeof(uint32_t), cut ? 1 : 0);
}

}  // namespace

void KnownCounts::Add(absl::Span<const uint32_t> classes, bool cut) {
  if (const auto hash = HashOf(classes, cut); hash.has_value()) hashes_.insert(*hash);
}

bool KnownCounts::Contains(absl::Span<const uint32_t> classes, bool cut) const {
  const auto hash = HashOf(classes, cut);
  return hash.has_value() && hashes_.contains(*hash);
}

std::vector<uint64_t> KnownCounts::Sorted() const {
  std::vector<uint64_t> sorted(hashes_.begin(), hashes_.end());
  std::sort(sorted.begin(), sorted.end());
  return sorted;
}

}  // namespace skein
