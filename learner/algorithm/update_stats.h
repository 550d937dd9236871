// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace skein {

// What an update tells of itself: names and values, in the order of an algorithm's choice. Metrics, logs and
// TensorBoard show all of them under these names and know none.   Algorithm::Update -> UpdateStats -> report The
// engine's own are in each: gradient_steps, skipped_steps (not finite), out_of_memory; an algorithm that goes over its
// data more than once adds epochs.
class UpdateStats {
 public:
  UpdateStats() = default;
  UpdateStats(std::initializer_list<std::pair<std::string, double>> stats) : stats_(stats) {}

  void Add(std::string name, double value) { stats_.emplace_back(std::move(name), value); }
  // `otherwise` if there is none of this name.
  double Get(std::string_view name, double otherwise = 0) const {
    for (const auto& [other, value] : stats_) {
      if (other == name) return value;
    }
    return otherwise;
  }
  auto begin() const { return stats_.begin(); }
  auto end() const { return stats_.end(); }

 private:
  std::vector<std::pair<std::string, double>> stats_;
};

}  // namespace skein
