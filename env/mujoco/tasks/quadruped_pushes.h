// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>

#include "base/number/philox.h"

// Pushes of QuadrupedStand-v0: sudden changes of the body's velocity in random horizontal directions.
namespace skein::quadruped {

// What is kept of an episode's pushes: their number so far; the step before which the next one comes (0 = not drawn
// yet); the key of their random numbers, two 32-bit words.
enum PushColumn { kPushes, kNextPush, kKey, kPushColumns = kKey + 2 };

// The settings of an environment.
struct Pushes {
  double speed = 0;                     // m/s; 0 = no pushes.
  std::array<double, 2> interval = {};  // From one to the next, and from the start to the first, s; uniform.

  static void Start(RandomStream& random, double* columns) {
    for (int i = 0; i < 2; ++i) columns[kKey + i] = random.NextUint32();
  }

  // Before step `step` of the episode, of `step_seconds` each. qvel: the velocities of a free body first.
  void Apply(double step, double step_seconds, double* columns, double* qvel) const {
    if (speed == 0) return;
    if (columns[kNextPush] == 0) Schedule(step, step_seconds, columns);
    if (step < columns[kNextPush]) return;
    constexpr double kPi = 3.14159265358979323846;
    const double direction = 2 * kPi * Uniform(columns, 0);
    qvel[0] += speed * std::cos(direction);
    qvel[1] += speed * std::sin(direction);
    ++columns[kPushes];
    Schedule(step, step_seconds, columns);
  }

 private:
  // In [0, 1); the numbers of push p are words 0 (direction) and 1 (time before it) of Philox's block p.
  static double Uniform(const double* columns, int word) {
    const auto number = [&](int column) { return static_cast<uint32_t>(columns[column]); };
    return Philox4x32({number(kPushes), 0, 0, 0}, {number(kKey), number(kKey + 1)})[word] / 4294967296.0;
  }
  void Schedule(double step, double step_seconds, double* columns) const {
    const double seconds = interval[0] + (interval[1] - interval[0]) * Uniform(columns, 1);
    columns[kNextPush] = step + std::max(1.0, std::round(seconds / step_seconds));
  }
};

}  // namespace skein::quadruped
