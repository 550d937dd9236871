// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

// bfloat16, the upper half of a float32: its range with 8 significant bits.
namespace skein {

// The nearest bfloat16, ties to the even one. What is finite stays finite (beyond the largest bfloat16: that one); NaN
// and infinity stay what they are.
void ToBfloat16(const float* from, size_t count, uint16_t* to);
void FromBfloat16(const uint16_t* from, size_t count, float* to);
// Each value becomes what ToBfloat16 and FromBfloat16 make of it.
void RoundToBfloat16(float* values, size_t count);

}  // namespace skein
