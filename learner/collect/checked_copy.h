// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

namespace skein {

// Copies `rows` rows of `width` floats each, which lie one after the other at `from`, aligned or not, to `to`, `stride`
// floats apart, and looks at each on its way: the first, counted in the order they lie in, that FindBeyond
// (base/number/number_bounds.h) would find, or rows * width. All are copied in any case. They must not overlap.
size_t CopyRowsAndFindBeyond(const void* from, size_t rows, size_t width, size_t stride, float bound, float* to);

}  // namespace skein
