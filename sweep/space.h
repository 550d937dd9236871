// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sweep/constraint.h"

// The set of configurations that a sweep may try.
//   space file -> Space; sampler -> Point -> overrides of the base configuration
namespace skein {

// One setting that the sweep varies. Its values are numbers inside: of a choice the index, else the value itself. They
// are what Optuna's journals call internal.
struct Parameter {
  enum class Kind { kChoice, kReal, kInteger };
  std::string path;  // "ppo.lr"
  Kind kind = Kind::kChoice;
  std::vector<std::string> choices;  // YAML texts.
  double low = 0, high = 0;          // Inclusive.
  bool log = false;                  // Uniform in the logarithm.
  int64_t step = 1;                  // Of an integer.
  uint32_t points = 0;               // Of a real in a grid; 0 = none given.
  // In use only where that earlier parameter is in use and has one of these values.
  struct Condition {
    size_t parameter = 0;
    std::vector<double> values;
  };
  std::optional<Condition> when;
};

struct Space {
  std::vector<Parameter> parameters;
  std::vector<Constraint> constraints;
};

// A value for each parameter; nullopt where it is not in use.
using Point = std::vector<std::optional<double>>;

// Whether parameter `index` is in use, by the values of the earlier ones.
bool IsInUse(const Space& space, const Point& point, size_t index);

// As one would write it in YAML: "0.001", "[64, 64]".
std::string ValueText(const Parameter& parameter, double value);

// "ppo.lr=0.001" for each parameter in use.
std::vector<std::string> Overrides(const Space& space, const Point& point);

// "ppo.lr 0.001, ppo.epochs 5"; "the base configuration" for a point of nothing.
std::string PointText(const Space& space, const Point& point);

}  // namespace skein
