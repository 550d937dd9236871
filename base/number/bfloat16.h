// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

// bfloat16, the upper half of a float32: its range with 8 significant bits.
namespace skein {

// Rounds to the nearest bfloat16, ties to even. Finite values stay finite (clamped to the largest bfloat16); NaN stays
// NaN, and infinity stays infinity.
void ToBfloat16(const float* from, size_t count, uint16_t* to);
void FromBfloat16(const uint16_t* from, size_t count, float* to);
// Replaces each value by FromBfloat16(ToBfloat16(value)).
void RoundToBfloat16(float* values, size_t count);

}  // namespace skein
