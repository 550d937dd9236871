// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cmath>

#include "base/number/philox.h"

// The pose in which an episode of QuadrupedStand-v0 begins.
namespace skein::quadruped {

inline constexpr int kMotors = 8;
inline constexpr int kJoints = 7;                           // Of qpos, the first joint.
inline constexpr double kHipEnd = 0.8, kKneeEnd = 2;        // Ranges are [-kHipEnd, kHipEnd] and [0, kKneeEnd], rad.
inline constexpr double kLimb = 0.3, kRadius = 0.05;        // Of thighs and shins; of knees and feet, m.
inline constexpr double kHipX = 0.4, kHipY = 0.2;           // Of a hip in the torso, m.
inline constexpr double kCrouchHip = -0.1, kPitch = -0.08;  // Without noise, rad.

// Writes qpos [15] but for x and y. Knees are bent to the share `knee` of their range. To each joint is added
// U(-noise, noise) of its range, to pitch and roll U(-noise, noise) rad. The lowest knee or foot touches the ground.
inline void Crouch(RandomStream& random, double knee, double noise, double* qpos) {
  const double pitch = kPitch + random.Uniform(-noise, noise), roll = random.Uniform(-noise, noise);
  // The rotation by the roll about x, then by the pitch about y.
  qpos[3] = std::cos(pitch / 2) * std::cos(roll / 2);
  qpos[4] = std::cos(pitch / 2) * std::sin(roll / 2);
  qpos[5] = std::sin(pitch / 2) * std::cos(roll / 2);
  qpos[6] = -std::sin(pitch / 2) * std::sin(roll / 2);
  double lowest = 0;  // z of the lowest knee or foot, were the torso at z = 0.
  for (int leg = 0; leg < 4; ++leg) {
    const double hip = std::clamp(kCrouchHip + 2 * kHipEnd * random.Uniform(-noise, noise), -kHipEnd, kHipEnd);
    const double bend = std::clamp(kKneeEnd * (knee + random.Uniform(-noise, noise)), 0.0, kKneeEnd);
    qpos[kJoints + 2 * leg] = hip;
    qpos[kJoints + 2 * leg + 1] = bend;
    const double hip_x = leg < 2 ? kHipX : -kHipX, y = leg % 2 == 0 ? kHipY : -kHipY;
    const double knee_x = hip_x - kLimb * std::sin(hip), knee_z = -kLimb * std::cos(hip);
    const double foot_x = knee_x - kLimb * std::sin(hip + bend), foot_z = knee_z - kLimb * std::cos(hip + bend);
    const auto height = [&](double x, double z) {
      return -std::sin(pitch) * x + std::cos(pitch) * (std::sin(roll) * y + std::cos(roll) * z);
    };
    lowest = std::min({lowest, height(knee_x, knee_z), height(foot_x, foot_z)});
  }
  qpos[2] = kRadius - lowest;
}

}  // namespace skein::quadruped
