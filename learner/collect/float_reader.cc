// SPDX-License-Identifier: Apache-2.0
#include "learner/collect/float_reader.h"

#include <algorithm>
#include <cstdint>
#include <iterator>

#include "base/number/bfloat16.h"
#include "base/number/number_bounds.h"
#include "learner/collect/checked_copy.h"

namespace skein {

size_t FloatReader::Read(size_t count, float bound, float* to) {
  if (bfloat16_) {
    uint16_t narrow[1024];
    for (size_t done = 0; done < count;) {
      const size_t now = std::min(count - done, std::size(narrow));
      data_.Read(narrow, now * sizeof(uint16_t));
      FromBfloat16(narrow, now, to + done);
      done += now;
    }
  } else {
    data_.Read(to, count * sizeof(float));
  }
  return FindBeyond(to, count, bound);
}

size_t FloatReader::ReadRows(size_t rows, size_t width, size_t stride, float bound, float* to) {
  size_t bad = rows * width;
  if (bad == 0) return 0;
  for (size_t row = 0; row < rows;) {
    // Rows that lie in one piece as they are can be looked at on their way.
    const size_t in_piece = bfloat16_ ? 0 : data_.Run().size() / (width * sizeof(float));
    const size_t now = std::clamp<size_t>(in_piece, 1, rows - row);
    size_t found;
    if (in_piece > 0) {
      found = CopyRowsAndFindBeyond(data_.Run().data(), now, width, stride, bound, to + row * stride);
      data_.Skip(now * width * sizeof(float));
    } else {
      found = Read(width, bound, to + row * stride);
    }
    if (found < now * width) bad = std::min(bad, row * width + found);
    row += now;
  }
  return bad;
}

}  // namespace skein
