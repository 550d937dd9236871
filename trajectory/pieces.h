// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <vector>

#include "absl/types/span.h"

// Received bytes, read in place: nothing is copied before its destination is known.
namespace skein {

// A message's bytes in one or more pieces, in order. Views of memory that the receiver owns.
using Pieces = std::vector<absl::Span<const char>>;

// Reads pieces sequentially from a given position. The pieces must outlive it. Copyable; not thread-safe.
class PieceReader {
 public:
  PieceReader() = default;
  // Starts at byte `offset` of all pieces. REQUIRES: offset <= their total size.
  PieceReader(const Pieces& pieces, size_t offset);
  // Copies the next `size` bytes. REQUIRES: there are as many.
  void Read(void* to, size_t size);
  // The next bytes that lie in one piece; empty: there are no more.
  absl::Span<const char> Run() const;
  // Skips the next `size` bytes. REQUIRES: there are as many.
  void Skip(size_t size);

 private:
  const absl::Span<const char>* piece_ = nullptr;
  const absl::Span<const char>* end_ = nullptr;
  size_t at_ = 0;  // Within *piece_.
};

}  // namespace skein
