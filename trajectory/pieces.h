// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <vector>

#include "absl/types/span.h"

// Bytes as they were received: nothing is copied before it is known where it belongs.
namespace skein {

// A message's bytes in one or more pieces, in order. Views of memory that the receiver keeps.
using Pieces = std::vector<absl::Span<const char>>;

// Reads on from one place among pieces that outlive it. A value; not thread-safe.
class PieceReader {
 public:
  PieceReader() = default;
  // At byte `offset` of all. REQUIRES: offset <= their total size.
  PieceReader(const Pieces& pieces, size_t offset);
  // Copies the next `size` bytes. REQUIRES: there are as many.
  void Read(void* to, size_t size);
  // The next bytes as far as they lie in one piece; empty: there are no more.
  absl::Span<const char> Run() const;
  // Goes on behind the next `size` bytes. REQUIRES: there are as many.
  void Skip(size_t size);

 private:
  const absl::Span<const char>* piece_ = nullptr;
  const absl::Span<const char>* end_ = nullptr;
  size_t at_ = 0;  // Within *piece_.
};

}  // namespace skein
