// SPDX-License-Identifier: Apache-2.0
#include "env/uav/uav_world.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "env/uav/uav_contact.h"
#include "env/uav/uav_place.h"

namespace skein {

UavWorld::UavWorld(UavTask task, const UavOptions& options, int envs)
    : task_(task),
      options_(options),
      layout_(MakeUavLayout(task, options)),
      spec_(MakeUavSpec(task, options)),
      uavs_(options.uavs),
      size_(options.size),
      radius_(static_cast<float>(options.radius)),
      speed_(static_cast<float>(options.speed)),
      reach_(ReachOfAStep(radius_, speed_)),
      grid_(options, layout_, envs),
      steps_(envs),
      alive_(envs),
      separation_squared_(envs),
      shortest_path_(grid_.padded_size()) {
  for (int choice = 0; choice < kUavChoices; ++choice) {
    step_x_[choice] = speed_ * kUavDirectionX[choice];
    step_y_[choice] = speed_ * kUavDirectionY[choice];
  }
  const size_t all = size_t(envs) * uavs_;
  for (std::vector<float>* floats :
       {&all_.x, &all_.y, &all_.vx, &all_.vy, &all_.target_x, &all_.target_y, &all_.distance, &all_.flown}) {
    floats->resize(all);
  }
  all_.status.resize(all);
  all_.start.resize(all);
  all_.target.resize(all);

  scratch_.uav.resize(uavs_);
  for (std::vector<float>* floats :
       {&scratch_.x, &scratch_.y, &scratch_.vx, &scratch_.vy, &scratch_.own, &scratch_.from_x, &scratch_.from_y}) {
    floats->resize(uavs_);
  }
  scratch_.crashed.resize(uavs_);
  scratch_.new_cell.resize(uavs_);
  scratch_.nearest_squared.resize(options.neighbours + 1);
  scratch_.nearest.resize(options.neighbours + 1);
  scratch_.keys.resize(layout_.cells);
}

void UavWorld::Clear(int env) {
  grid_.Clear(env);
  alive_[env] = uavs_;
  steps_[env] = 0;
  separation_squared_[env] = std::numeric_limits<float>::max();
}

void UavWorld::SetTarget(size_t uav, int cell) {
  all_.target[uav] = cell;
  all_.target_x[uav] = static_cast<float>(cell % size_) + 0.5f;
  all_.target_y[uav] = static_cast<float>(cell / size_) + 0.5f;
  all_.distance[uav] = std::sqrt(DistanceSquared(uav));
}

float UavWorld::DistanceSquared(size_t uav) const {
  const float dx = all_.target_x[uav] - all_.x[uav], dy = all_.target_y[uav] - all_.y[uav];
  return dx * dx + dy * dy;
}

void UavWorld::Reset(int env, RandomStream& random) {
  Clear(env);
  std::vector<uint64_t>& keys = scratch_.keys;
  for (size_t cell = 0; cell < keys.size(); ++cell) keys[cell] = uint64_t{random.NextUint32()} << 16 | cell;
  const bool navigate = task_ == UavTask::kNavigate;
  const auto starts = keys.begin() + options_.obstacles;
  const auto end = starts + (navigate ? 2 : 1) * uavs_;
  // The order of the obstacles among each other does not matter.
  std::nth_element(keys.begin(), starts, keys.end());
  std::partial_sort(starts, end, keys.end());
  const auto cell_of = [](uint64_t key) { return static_cast<int>(key & 0xffff); };
  for (auto key = keys.begin(); key != starts; ++key) grid_.PlaceObstacle(env, cell_of(*key));
  for (int n = 0; n < uavs_; ++n) {
    const size_t uav = size_t(env) * uavs_ + n;
    all_.start[uav] = cell_of(starts[n]);
    grid_.MarkVisited(env, grid_.CellIndex(all_.start[uav]));
    all_.x[uav] = static_cast<float>(all_.start[uav] % size_) + 0.5f;
    all_.y[uav] = static_cast<float>(all_.start[uav] / size_) + 0.5f;
    all_.vx[uav] = all_.vy[uav] = all_.flown[uav] = 0;
    all_.status[uav] = UavStatus::kAlive;
    SetTarget(uav, navigate ? cell_of(starts[uavs_ + n]) : all_.start[uav]);
  }
  Collide(env,
          Gather(env));  // For the separation: starts are too far apart for collisions.
}

int UavWorld::Gather(int env) const {
  const size_t first = size_t(env) * uavs_;
  int alive = 0;
  for (int n = 0; n < uavs_; ++n) {
    if (all_.status[first + n] != UavStatus::kAlive) continue;
    scratch_.uav[alive] = n;
    scratch_.x[alive] = scratch_.from_x[alive] = all_.x[first + n];
    scratch_.y[alive] = scratch_.from_y[alive] = all_.y[first + n];
    scratch_.vx[alive] = all_.vx[first + n];
    scratch_.vy[alive] = all_.vy[first + n];
    ++alive;
  }
  return alive;
}

void UavWorld::Move(int env, const float* action, int alive) {
  const size_t first = size_t(env) * uavs_;
  const uint8_t* const occupied = grid_.occupied(env) + grid_.At(0, 0);
  for (int k = 0; k < alive; ++k) {
    const int n = scratch_.uav[k];
    float vx, vy;
    if (options_.continuous) {
      float ax = action[2 * n], ay = action[2 * n + 1];
      const float squared = ax * ax + ay * ay;
      if (squared > 1) {
        const float length = std::sqrt(squared);
        ax /= length;
        ay /= length;
      }
      vx = speed_ * ax;
      vy = speed_ * ay;
    } else {
      const int choice = static_cast<int>(action[n]);
      vx = step_x_[choice];
      vy = step_y_[choice];
    }
    const size_t uav = first + n;
    const UavSurroundings around(occupied, grid_.stride(), reach_, radius_, scratch_.x[k], scratch_.y[k]);
    all_.vx[uav] = scratch_.vx[k] = vx;
    all_.vy[uav] = scratch_.vy[k] = vy;
    all_.x[uav] = scratch_.x[k] += vx;
    all_.y[uav] = scratch_.y[k] += vy;
    all_.flown[uav] += std::sqrt(vx * vx + vy * vy);
    scratch_.crashed[k] = around.Hit(vx, vy, scratch_.x[k], scratch_.y[k]);
  }
}

void UavWorld::Collide(int env, int alive) {
  const float diameter = 2 * radius_;
  const float diameter_squared = diameter * diameter;
  const UavScratch& all = scratch_;
  const auto least_squared = [&all](int k, int l) {
    return LeastSquared(all.from_x[l] - all.from_x[k], all.from_y[l] - all.from_y[k], all.vx[l] - all.vx[k],
                        all.vy[l] - all.vy[k], all.x[l] - all.x[k], all.y[l] - all.y[k]);
  };
  uint8_t* const crashed = scratch_.crashed.data();
  float smallest = separation_squared_[env];
  for (int k = 0; k < alive; ++k) {
    float nearest = std::numeric_limits<float>::max();
    for (int l = k + 1; l < alive; ++l) {
      nearest = std::min(nearest, least_squared(k, l));
    }
    smallest = std::min(smallest, nearest);
    if (nearest >= diameter_squared) continue;
    crashed[k] = 1;
    for (int l = k + 1; l < alive; ++l) {
      if (least_squared(k, l) < diameter_squared) crashed[l] = 1;
    }
  }
  separation_squared_[env] = smallest;
}

void UavWorld::Visit(int env, int alive) {
  const uint8_t* const unvisited = grid_.unvisited(env);
  const auto begin = scratch_.new_cell.begin(), end = begin + alive;
  bool any = false;
  for (int k = 0; k < alive; ++k) {
    scratch_.new_cell[k] = -1;
    if (scratch_.crashed[k] != 0) continue;
    const UavPlace place = PlaceAt(scratch_.x[k], scratch_.y[k]);
    const int index = grid_.At(place.i, place.j);
    if (unvisited[index] == 0) continue;
    scratch_.new_cell[k] = index;
    any = true;
  }
  if (!any) return;
  const float reward = static_cast<float>(options_.cover_reward);
  for (int k = 0; k < alive; ++k) {
    const int index = scratch_.new_cell[k];
    if (index < 0) continue;
    if (task_ == UavTask::kCover) scratch_.own[k] = reward / static_cast<float>(std::count(begin, end, index));
    grid_.MarkVisited(env, index);
  }
}

bool UavWorld::Step(int env, const float* action, float* reward) {
  const size_t first = size_t(env) * uavs_;
  const int alive = Gather(env);
  std::fill_n(scratch_.own.begin(), alive, 0.0f);
  Move(env, action, alive);
  Collide(env, alive);
  Visit(env, alive);
  ++steps_[env];

  const float progress = static_cast<float>(options_.progress_reward);
  const float target = static_cast<float>(options_.target_reward);
  const float collision = static_cast<float>(options_.collision_penalty);
  const float step = static_cast<float>(options_.step_penalty);
  const float share = static_cast<float>(options_.team_share);
  float sum = 0;
  for (int k = 0; k < alive; ++k) {
    const size_t uav = first + scratch_.uav[k];
    float own = scratch_.own[k];
    bool arrived = false;
    if (task_ == UavTask::kNavigate) {
      const float squared = DistanceSquared(uav);
      const float distance = std::sqrt(squared);
      own = progress * (all_.distance[uav] - distance);
      all_.distance[uav] = distance;
      arrived = scratch_.crashed[k] == 0 && squared < kUavArrivalSquared;
      if (arrived) own += target;
    }
    if (scratch_.crashed[k] != 0) own -= collision;
    own -= step;
    scratch_.own[k] = own;
    sum += own;
    if (arrived) all_.status[uav] = UavStatus::kArrived;
    if (scratch_.crashed[k] != 0) all_.status[uav] = UavStatus::kCrashed;
    if (arrived || scratch_.crashed[k] != 0) --alive_[env];
  }
  const float mean = sum / static_cast<float>(uavs_);
  std::fill_n(reward, uavs_, share * mean);
  for (int k = 0; k < alive; ++k) {
    reward[scratch_.uav[k]] = (1 - share) * scratch_.own[k] + share * mean;
  }
  return alive_[env] == 0 || (task_ == UavTask::kCover && grid_.left_to_visit(env) == 0);
}

void UavWorld::Active(int env, uint8_t* active) const {
  for (int n = 0; n < uavs_; ++n) active[n] = all_.status[size_t(env) * uavs_ + n] == UavStatus::kAlive;
}

}  // namespace skein
