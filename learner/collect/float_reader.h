// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

#include "trajectory/pieces.h"

namespace skein {

// Reads successive numbers, stored as float32 or bfloat16, as float32. A value type; not thread-safe.
class FloatReader {
 public:
  FloatReader() = default;
  FloatReader(PieceReader data, bool bfloat16) : data_(data), bfloat16_(bfloat16) {}
  // Copies the next `rows` x `width` numbers to rows at `to`, `stride` floats apart. Returns the index of the first one
  // that FindBeyond finds, or rows * width. REQUIRES: so many are left.
  size_t ReadRows(size_t rows, size_t width, size_t stride, float bound, float* to);

 private:
  // The same for the next `count` numbers, to one row.
  size_t Read(size_t count, float bound, float* to);

  PieceReader data_;
  bool bfloat16_ = false;
};

}  // namespace skein
