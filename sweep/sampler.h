// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "base/number/philox.h"
#include "sweep/space.h"

// Skein's own samplers: pure functions of the seed and of the trial's number, whatever other trials are doing. A
// suggestion takes time in proportion to the space and not to the number of trials.
namespace skein {

// The sweep's random numbers: stream (seed, kSweepRandom, trial, parameter and draw).
inline constexpr auto kSweepRandom = static_cast<RandomPurpose>(64);

// Whether a point may be tried; false: a constraint does not hold.
using Admits = std::function<bool(const Point&)>;

// One value of a parameter at random, from the stream.
double Draw(const Parameter& parameter, RandomStream* random);

// The point of trial `number`: draws until one is admitted, at most kDraws times; then nullopt. The draws of one
// parameter do not depend on the others'.
inline constexpr uint32_t kDraws = 1000;
std::optional<Point> DrawPoint(const Space& space, uint64_t seed, uint32_t number, const Admits& admits);

// All points of the grid that are admitted, in order: the last parameter changes fastest. A parameter that is not in
// use counts once. InvalidArgument: more than kMostPoints before the constraints.
inline constexpr uint64_t kMostPoints = 1000000;
absl::StatusOr<std::vector<Point>> GridPoints(const Space& space, const Admits& admits);

// How many values a parameter has in a grid, and the one of an index.
uint64_t GridSize(const Parameter& parameter);
double GridValue(const Parameter& parameter, uint64_t index);

// A copy of `point` for population-based training (Jaderberg et al. 2017): each parameter in use is drawn anew with
// probability `resample`; else a number becomes times or over `perturb`, within its bounds, a whole number at least the
// next one, and a choice the one before or after it in the list. Draws until a point is admitted, at most kDraws times;
// then it is `point` itself. An empty `admits` admits all.
Point Explore(const Space& space, const Point& point, uint64_t seed, uint32_t number, double resample, double perturb,
              const Admits& admits = {});

}  // namespace skein
