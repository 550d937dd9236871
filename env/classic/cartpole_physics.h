// SPDX-License-Identifier: Apache-2.0
#pragma once

// Constants of CartPole-v1, shared by the CPU form and the tensor form.
namespace skein::cartpole {

inline constexpr double kGravity = 9.8;
inline constexpr double kPoleMass = 0.1;
inline constexpr double kTotalMass = 1.0 + kPoleMass;  // The cart weighs 1 kg.
inline constexpr double kHalfLength = 0.5;             // Of the pole.
inline constexpr double kForce = 10.0;
inline constexpr double kTimestep = 0.02;
inline constexpr double kMaxX = 2.4;
inline constexpr double kMaxTheta = 12 * 2 * 3.14159265358979323846 / 360;
inline constexpr double kResetRange = 0.05;

}  // namespace skein::cartpole
