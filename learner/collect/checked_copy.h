// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

namespace skein {

// Copies `rows` contiguous rows of `width` floats from `from` (any alignment) to `to`, where rows are `stride` floats
// apart, and checks each float against `bound`. Returns the index in `from` of the first float that FindBeyond
// (base/number/number_bounds.h) would find, or rows * width. Always copies all. The ranges must not overlap.
size_t CopyRowsAndFindBeyond(const void* from, size_t rows, size_t width, size_t stride, float bound, float* to);

}  // namespace skein
