// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <initializer_list>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace skein {

// Statistics of one update: names and values, in an order that the algorithm defines. Metrics, logs and TensorBoard
// show all of them under these names.   Algorithm::Update -> UpdateStats -> report
class UpdateStats {
 public:
  // Names that code outside algorithms reads or adds.
  static constexpr char kEpochs[] = "epochs";                 // How often each sample was trained on; absent: once.
  static constexpr char kGradientSteps[] = "gradient_steps";  // Optimiser steps that were taken.
  static constexpr char kSkippedSteps[] = "skipped_steps";    // Steps not taken because they were not finite.
  static constexpr char kOutOfMemory[] = "out_of_memory";     // How often passes were made smaller for lack of memory.

  UpdateStats() = default;
  UpdateStats(std::initializer_list<std::pair<std::string, double>> stats) : stats_(stats) {}

  void Add(std::string name, double value) { stats_.emplace_back(std::move(name), value); }
  // The value of `name`, or `absent` if there is none.
  double Get(std::string_view name, double absent) const {
    const double* const value = Find(name);
    return value == nullptr ? absent : *value;
  }
  // The value of `name`. Throws std::out_of_range if there is none.
  double at(std::string_view name) const {
    const double* const value = Find(name);
    if (value == nullptr) throw std::out_of_range(std::string(name));
    return *value;
  }
  auto begin() const { return stats_.begin(); }
  auto end() const { return stats_.end(); }
  friend bool operator==(const UpdateStats& a, const UpdateStats& b) { return a.stats_ == b.stats_; }

 private:
  const double* Find(std::string_view name) const {
    for (const auto& [other, value] : stats_) {
      if (other == name) return &value;
    }
    return nullptr;
  }

  std::vector<std::pair<std::string, double>> stats_;
};

}  // namespace skein
