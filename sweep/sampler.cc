// SPDX-License-Identifier: Apache-2.0
#include "sweep/sampler.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"

namespace skein {
namespace {

// Whole numbers from low in steps: how many there are.
uint64_t Integers(const Parameter& parameter) {
  return static_cast<uint64_t>((parameter.high - parameter.low) / static_cast<double>(parameter.step)) + 1;
}

RandomStream Stream(uint64_t seed, uint32_t number, size_t parameter, uint32_t draw) {
  return RandomStream(seed, kSweepRandom, number, parameter * kDraws + draw);
}

}  // namespace

double Draw(const Parameter& parameter, RandomStream* random) {
  const double low = parameter.low, high = parameter.high;
  switch (parameter.kind) {
    case Parameter::Kind::kChoice:
      return random->Below(static_cast<uint32_t>(parameter.choices.size()));
    case Parameter::Kind::kReal:
      if (!parameter.log) return random->Uniform(low, high);
      return std::clamp(std::exp(random->Uniform(std::log(low), std::log(high))), low, high);
    case Parameter::Kind::kInteger:
      break;
  }
  if (parameter.log) {  // Each whole number stands for the half around it.
    const double drawn = std::exp(random->Uniform(std::log(low - 0.5), std::log(high + 0.5)));
    return std::clamp(std::round(drawn), low, high);
  }
  const auto index = std::floor(random->Uniform() * static_cast<double>(Integers(parameter)));
  return low + static_cast<double>(parameter.step) * index;
}

std::optional<Point> DrawPoint(const Space& space, uint64_t seed, uint32_t number, const Admits& admits) {
  for (uint32_t draw = 0; draw < kDraws; ++draw) {
    Point point;
    for (size_t i = 0; i < space.parameters.size(); ++i) {
      RandomStream random = Stream(seed, number, i, draw);
      point.push_back(std::nullopt);
      if (IsInUse(space, point, i)) point.back() = Draw(space.parameters[i], &random);
    }
    if (admits(point)) return point;
  }
  return std::nullopt;
}

uint64_t GridSize(const Parameter& parameter) {
  switch (parameter.kind) {
    case Parameter::Kind::kChoice:
      return parameter.choices.size();
    case Parameter::Kind::kReal:
      return parameter.points;
    case Parameter::Kind::kInteger:
      break;
  }
  return parameter.points > 0 ? std::min<uint64_t>(parameter.points, Integers(parameter)) : Integers(parameter);
}

double GridValue(const Parameter& parameter, uint64_t index) {
  if (parameter.kind == Parameter::Kind::kChoice) return static_cast<double>(index);
  if (parameter.kind == Parameter::Kind::kInteger && parameter.points == 0) {
    return parameter.low + static_cast<double>(parameter.step) * static_cast<double>(index);
  }
  const uint64_t last = GridSize(parameter) - 1;
  if (index == last) return parameter.high;
  const double share = last == 0 ? 0 : static_cast<double>(index) / static_cast<double>(last);
  const double low = parameter.low, high = parameter.high;
  const double value = parameter.log ? low * std::pow(high / low, share) : low + (high - low) * share;
  if (parameter.kind == Parameter::Kind::kReal) return value;
  return parameter.low +
         static_cast<double>(parameter.step) * std::round((value - low) / static_cast<double>(parameter.step));
}

absl::StatusOr<std::vector<Point>> GridPoints(const Space& space, const Admits& admits) {
  double product = 1;
  for (const Parameter& one : space.parameters) product *= static_cast<double>(GridSize(one));
  if (product > static_cast<double>(kMostPoints)) {
    return absl::InvalidArgumentError(absl::StrCat("the grid has ", product, " points, at most ", kMostPoints,
                                                   " are tried; take another sampler, or fewer values"));
  }
  std::vector<Point> points;
  std::vector<uint64_t> index(space.parameters.size(), 0);
  while (true) {
    Point point;
    bool twice = false;  // One of the grid's points has it with another value of what is not in use.
    for (size_t i = 0; i < index.size(); ++i) {
      point.push_back(std::nullopt);
      if (IsInUse(space, point, i)) {
        point.back() = GridValue(space.parameters[i], index[i]);
      } else {
        twice = twice || index[i] > 0;
      }
    }
    if (!twice && admits(point)) points.push_back(std::move(point));
    size_t digit = index.size();
    while (digit > 0 && ++index[digit - 1] == GridSize(space.parameters[digit - 1])) index[--digit] = 0;
    if (digit == 0) return points;
  }
}

namespace {

// The neighbour of a number, times or over `perturb`: within its bounds and, of whole numbers, another one.
double Neighbour(const Parameter& parameter, double from, bool up, double perturb) {
  const double value = std::clamp(up ? from * perturb : from / perturb, parameter.low, parameter.high);
  if (parameter.kind != Parameter::Kind::kInteger) return value;
  const auto step = static_cast<double>(parameter.step);
  const double last = parameter.low + step * static_cast<double>(Integers(parameter) - 1);
  const double rounded = std::min(parameter.low + step * std::round((value - parameter.low) / step), last);
  return rounded != from ? rounded : std::clamp(from + (up ? step : -step), parameter.low, last);
}

Point ExploreOnce(const Space& space, const Point& point, uint64_t seed, uint32_t number, uint32_t draw,
                  double resample, double perturb) {
  Point explored;
  for (size_t i = 0; i < space.parameters.size(); ++i) {
    const Parameter& parameter = space.parameters[i];
    RandomStream random = Stream(seed, number, i, draw);
    explored.push_back(std::nullopt);
    if (!IsInUse(space, explored, i)) continue;
    const bool anew = random.Uniform() < resample || !point[i];
    const bool up = random.Uniform() < 0.5;
    if (anew) {
      explored.back() = Draw(parameter, &random);
    } else if (parameter.kind == Parameter::Kind::kChoice) {
      const double last = static_cast<double>(parameter.choices.size()) - 1;
      explored.back() = std::clamp(*point[i] + (up ? 1 : -1), 0.0, last);
    } else {
      explored.back() = Neighbour(parameter, *point[i], up, perturb);
    }
  }
  return explored;
}

}  // namespace

Point Explore(const Space& space, const Point& point, uint64_t seed, uint32_t number, double resample, double perturb,
              const Admits& admits) {
  for (uint32_t draw = 0; draw < kDraws; ++draw) {
    Point explored = ExploreOnce(space, point, seed, number, draw, resample, perturb);
    if (!admits || admits(explored)) return explored;
  }
  return point;
}

}  // namespace skein
