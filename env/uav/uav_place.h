// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

// The cell of a UAV and its place within the cell; docs/environments.md, phase 3 of a step.
namespace skein {

struct UavPlace {
  int i, j;    // Cell, rounded down.
  float f, g;  // Within the cell, [0, 1].
};

inline UavPlace PlaceAt(float x, float y) {
  int i = static_cast<int>(x), j = static_cast<int>(y);
  i -= x < static_cast<float>(i);
  j -= y < static_cast<float>(j);
  return {i, j, x - static_cast<float>(i), y - static_cast<float>(j)};
}

// Whether a disc at (x, y) touches an occupied cell. `origin` is cell (0, 0) of a grid with rows of `stride`. REQUIRES:
// the grid has all cells up to two away from the disc's cell.
inline bool HitsStatic(const uint8_t* origin, int stride, float radius, float x, float y) {
  const UavPlace place = PlaceAt(x, y);
  const float east = 1 - place.f, north = 1 - place.g;
  const int hx = place.f < radius ? -1 : east < radius;
  const int hy = place.g < radius ? -1 : north < radius;
  // If no side is within reach, the gap is at least the radius, so the corner is out of reach too.
  const float ex = hx < 0 ? place.f : east;
  const float ey = hy < 0 ? place.g : north;
  const uint8_t corner = ex * ex + ey * ey < radius * radius;
  const uint8_t* const cell = origin + place.j * stride + place.i;
  return (cell[0] | cell[hx] | cell[hy * stride] | (corner & cell[hy * stride + hx])) != 0;
}

}  // namespace skein
