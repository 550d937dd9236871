// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

#include "trajectory/pieces.h"

namespace skein {

// Reads on among real numbers that lie there as float32 or bfloat16, as float32. A value; not thread-safe.
class FloatReader {
 public:
  FloatReader() = default;
  FloatReader(PieceReader data, bool bfloat16) : data_(data), bfloat16_(bfloat16) {}
  // Copies the next `rows` x `width` numbers to rows at `to`, `stride` apart. The first of them that FindBeyond finds,
  // or rows * width. REQUIRES: there are as many.
  size_t ReadRows(size_t rows, size_t width, size_t stride, float bound, float* to);

 private:
  // The same of the next numbers of one row.
  size_t Read(size_t count, float bound, float* to);

  PieceReader data_;
  bool bfloat16_ = false;
};

}  // namespace skein
