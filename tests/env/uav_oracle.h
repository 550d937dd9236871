// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <set>
#include <utility>
#include <vector>

#include "base/number/philox.h"
#include "env/uav/uav_layout.h"
#include "env/uav/uav_options.h"

namespace skein {

// One arena of UavNavigate-v0 or UavCover-v0, written line by line after docs/environments.md, slow and plain.
class UavOracle {
 public:
  UavOracle(UavTask task, const UavOptions& options) : task_(task), options_(options) {}

  void Reset(RandomStream& random);
  bool Step(const std::vector<float>& action, std::vector<float>* reward);
  std::vector<float> Observe() const;      // [N, O]
  std::vector<float> GlobalState() const;  // [G]
  std::vector<float> Metrics() const;      // [P]
  std::vector<double> SaveState() const;

 private:
  using Cell = std::pair<int, int>;
  struct Uav {
    float x = 0, y = 0, vx = 0, vy = 0, flown = 0;
    float from_x = 0, from_y = 0;  // Before the step.
    UavStatus status = UavStatus::kAlive;
    int start = 0, target = 0;
    bool IsAlive() const { return status == UavStatus::kAlive; }
  };

  float Radius() const { return static_cast<float>(options_.radius); }
  float Speed() const { return static_cast<float>(options_.speed); }
  float Side() const { return static_cast<float>(options_.size); }
  bool Navigate() const { return task_ == UavTask::kNavigate; }
  bool Occupied(Cell cell) const;
  bool Unvisited(Cell cell) const { return !Occupied(cell) && visited_.count(cell) == 0; }
  int Free() const { return options_.size * options_.size - static_cast<int>(obstacles_.size()); }
  bool HitsStatic(float x, float y) const;
  // Phase 3: on the way from (x, y), by (vx, vy).
  bool HitsOnTheWay(float x, float y, float vx, float vy) const;
  float TargetX(const Uav& uav) const { return static_cast<float>(uav.target % options_.size) + 0.5f; }
  float TargetY(const Uav& uav) const { return static_cast<float>(uav.target / options_.size) + 0.5f; }
  float Distance(const Uav& uav) const;
  std::vector<float> TeamFigures() const;
  // Infinite if there is no way.
  double ShortestWay(int from, int to) const;

  const UavTask task_;
  const UavOptions options_;
  std::set<Cell> obstacles_, visited_;
  std::vector<Uav> uavs_;
  int steps_ = 0;
  float smallest_ = 0;
};

}  // namespace skein
