// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <initializer_list>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace skein {

// What an update tells of itself: names and values, in the order of an algorithm's choice. Metrics, logs and
// TensorBoard show all of them under these names.   Algorithm::Update -> UpdateStats -> report
class UpdateStats {
 public:
  // The few names that have a meaning of their own outside algorithms.
  static constexpr char kEpochs[] = "epochs";                 // How often each sample was trained on; absent: once.
  static constexpr char kGradientSteps[] = "gradient_steps";  // Optimizer steps that were taken.
  static constexpr char kSkippedSteps[] = "skipped_steps";    // Those that were not, for not being finite.

  UpdateStats() = default;
  UpdateStats(std::initializer_list<std::pair<std::string, double>> stats) : stats_(stats) {}

  void Add(std::string name, double value) { stats_.emplace_back(std::move(name), value); }
  // `absent`: where there is none of this name.
  double Get(std::string_view name, double absent) const {
    const double* const value = Find(name);
    return value == nullptr ? absent : *value;
  }
  // Throws std::out_of_range where there is none of this name.
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
