// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "env/uav/uav_place.h"

// Contacts on the way from one position to the next; docs/environments.md, phases 3 and 4 of a step. A UAV flies
// straight, at constant speed, by at most one metre.
namespace skein {

// How many cells away, in x and in y, a disc can touch one on its way: 1 or 2. The margin is far above rounding.
inline int ReachOfAStep(float radius, float speed) { return radius + speed <= 0.99f ? 1 : 2; }

// What a disc at one position can touch in its next step. All of it lies within ReachOfAStep.
class UavSurroundings {
 public:
  // `origin` is cell (0, 0) of a grid with rows of `stride`. REQUIRES: the grid has all cells up to three away from
  // that of (x, y), and outlives this.
  UavSurroundings(const uint8_t* origin, int stride, int reach, float radius, float x, float y)
      : origin_(origin), stride_(stride), radius_(radius), place_(PlaceAt(x, y)) {
    const uint8_t* const cell = origin + place_.j * stride + place_.i;
    for (int b = 1 - reach; b <= reach; ++b) {
      for (int a = 1 - reach; a <= reach; ++a) {
        const uint8_t* const beyond = cell + b * stride + a;  // North-east of the corner.
        if ((beyond[0] | beyond[-1] | beyond[-stride] | beyond[-stride - 1]) == 0) continue;
        corner_x_[corners_] = static_cast<float>(a);
        corner_y_[corners_] = static_cast<float>(b);
        ++corners_;
      }
    }
    touches_ = corners_ > 0 && HitsStatic(origin, stride, radius, x, y);
  }

  // Whether a disc that flies from here by (vx, vy) to (end_x, end_y), its rounded end, touches an occupied cell on its
  // way or at either end.
  bool Hit(float vx, float vy, float end_x, float end_y) const {
    return touches_ || (corners_ > 0 && (HitsStatic(origin_, stride_, radius_, end_x, end_y) || PassesCorner(vx, vy) ||
                                         PassesCell(vx, vy, PlaceAt(end_x, end_y))));
  }

 private:
  // A corner of an occupied cell is beside the way and nearer than the radius.
  bool PassesCorner(float vx, float vy) const {
    const float squared = vx * vx + vy * vy, limit = radius_ * radius_ * squared;
    const float own_along = place_.f * vx + place_.g * vy, own_aside = place_.f * vy - place_.g * vx;
    for (int corner = 0; corner < corners_; ++corner) {
      const float a = corner_x_[corner], b = corner_y_[corner];
      const float along = (a * vx + b * vy) - own_along, aside = (a * vy - b * vx) - own_aside;
      if (along > 0 && along < squared && aside * aside < limit) return true;
    }
    return false;
  }

  // The middle flies diagonally and crosses an occupied cell between the first and the last.
  bool PassesCell(float vx, float vy, const UavPlace& end) const {
    const int di = (end.i > place_.i) - (end.i < place_.i), dj = (end.j > place_.j) - (end.j < place_.j);
    if (di == 0 || dj == 0) return false;
    const float to_column = static_cast<float>(di > 0) - place_.f, to_row = static_cast<float>(dj > 0) - place_.g;
    const bool column_first = std::abs(to_column * vy) < std::abs(to_row * vx);
    return origin_[(place_.j + (column_first ? 0 : dj)) * stride_ + place_.i + (column_first ? di : 0)] != 0;
  }

  static constexpr int kMostCorners = 16;

  const uint8_t* const origin_;
  const int stride_;
  const float radius_;
  const UavPlace place_;
  bool touches_;  // At the start already, which only a loaded state can.
  int corners_ = 0;
  float corner_x_[kMostCorners], corner_y_[kMostCorners];  // Corners that an occupied cell has, from the own cell.
};

// The smallest squared distance of two points during a step, [0, inf). (dx, dy) and (end_x, end_y): from one to the
// other at the start and at the end; (wx, wy): the velocity of the other less that of the one.
inline float LeastSquared(float dx, float dy, float wx, float wy, float end_x, float end_y) {
  const float least = std::min(dx * dx + dy * dy, end_x * end_x + end_y * end_y);
  const float along = -(dx * wx + dy * wy), squared = wx * wx + wy * wy;
  if (along <= 0 || along >= squared) return least;
  const float aside = dx * wy - dy * wx;
  return std::min(least, aside * aside / squared);
}

}  // namespace skein
