// SPDX-License-Identifier: Apache-2.0
// What a UAV and a critic see.
#include <algorithm>
#include <cmath>

#include "env/uav/uav_contact.h"
#include "env/uav/uav_place.h"
#include "env/uav/uav_world.h"

namespace skein {
namespace {

// The cells around `cell`, in a padded grid with rows of `stride`, as far as a UAV senses.
void ObserveCells(const uint8_t* cell, int stride, int reach, float* obs) {
  const int side = 2 * reach + 1;
  const uint8_t* row = cell - reach * stride - reach;
  for (int b = 0; b < side; ++b, row += stride, obs += side) {
    for (int a = 0; a < side; ++a) obs[a] = static_cast<float>(row[a]);
  }
}

// The nearest of those in `scratch`, seen from number `self` of them.
void ObserveNeighbours(const UavOptions& options, int self, int alive, UavScratch& scratch, float* obs) {
  const int most = options.neighbours;
  const float speed = static_cast<float>(options.speed);
  std::fill_n(obs, most * kUavNeighbourFloats, 0.0f);
  if (most == 0) return;
  const float reach = static_cast<float>(options.sensing_radius);
  const float reach_squared = reach * reach;
  const float* const x = scratch.x.data();
  const float* const y = scratch.y.data();
  float* const squares = scratch.nearest_squared.data();
  int* const nearest = scratch.nearest.data();
  int found = 0;
  for (int k = 0; k < alive; ++k) {
    const float dx = x[k] - x[self], dy = y[k] - y[self];
    const float squared = dx * dx + dy * dy;
    if (squared > reach_squared || k == self || (found == most && squared >= squares[most - 1])) continue;
    // Insertion; of equals, which come in the order of their numbers, the first stays first.
    int place = found < most ? found++ : most - 1;
    for (; place > 0 && squares[place - 1] > squared; --place) {
      squares[place] = squares[place - 1];
      nearest[place] = nearest[place - 1];
    }
    squares[place] = squared;
    nearest[place] = k;
  }
  for (int place = 0; place < found; ++place, obs += kUavNeighbourFloats) {
    const int k = nearest[place];
    obs[0] = (x[k] - x[self]) / reach;
    obs[1] = (y[k] - y[self]) / reach;
    obs[2] = (scratch.vx[k] - scratch.vx[self]) / speed;
    obs[3] = (scratch.vy[k] - scratch.vy[self]) / speed;
    obs[4] = 1;
  }
}

}  // namespace

float UavWorld::TimeLeft(int env) const {
  return std::max(0.0f, 1 - static_cast<float>(steps_[env]) / static_cast<float>(kUavStepLimit));
}

void UavWorld::Observe(int env, float* obs) const {
  const size_t first = size_t(env) * uavs_;
  const int alive = Gather(env);
  const uint8_t* const occupied = grid_.occupied(env) + grid_.At(0, 0);
  const uint8_t* const unvisited = grid_.unvisited(env) + grid_.At(0, 0);
  const float side = static_cast<float>(size_), time = TimeLeft(env);
  const int stride = grid_.stride(), reach = options_.sensing_radius;
  int next = 0;  // That has not been written yet.
  for (int k = 0; k < alive; ++k) {
    const int n = scratch_.uav[k];
    std::fill(obs + next * layout_.obs_size, obs + n * layout_.obs_size, 0.0f);
    next = n + 1;
    float* const own = obs + n * layout_.obs_size;
    const float x = scratch_.x[k], y = scratch_.y[k];
    const UavPlace place = PlaceAt(x, y);
    own[0] = 2 * x / side - 1;
    own[1] = 2 * y / side - 1;
    own[2] = 2 * place.f - 1;
    own[3] = 2 * place.g - 1;
    own[4] = scratch_.vx[k] / speed_;
    own[5] = scratch_.vy[k] / speed_;
    own[layout_.obs_time] = time;
    if (task_ == UavTask::kNavigate) {
      float* const target = own + layout_.obs_target;
      const float dx = all_.target_x[first + n] - x, dy = all_.target_y[first + n] - y,
                  distance = all_.distance[first + n];
      target[0] = dx / side;
      target[1] = dy / side;
      target[2] = dx / distance;
      target[3] = dy / distance;
      target[4] = distance / (distance + 1);
    }
    float* const feelers = own + layout_.obs_feelers;
    const UavSurroundings around(occupied, stride, reach_, radius_, x, y);
    for (int heading = 0; heading < kUavHeadings; ++heading) {
      const float vx = step_x_[heading + 1], vy = step_y_[heading + 1];
      feelers[heading] = around.Hit(vx, vy, x + vx, y + vy) ? 1 : 0;
    }
    const int cell = place.j * stride + place.i;
    ObserveCells(occupied + cell, stride, reach, own + layout_.obs_occupancy);
    if (task_ == UavTask::kCover) ObserveCells(unvisited + cell, stride, reach, own + layout_.obs_unvisited);
    ObserveNeighbours(options_, k, alive, scratch_, own + layout_.obs_neighbours);
  }
  std::fill(obs + next * layout_.obs_size, obs + uavs_ * layout_.obs_size, 0.0f);
}

void UavWorld::GlobalState(int env, float* state) const {
  if (task_ == UavTask::kNavigate) {
    DescribeTeam(env, state);
  } else {
    DescribeSearch(env, state);
  }
  state[layout_.global_time] = TimeLeft(env);
}

void UavWorld::DescribeTeam(int env, float* state) const {
  const size_t first = size_t(env) * uavs_;
  const int alive = Gather(env);
  const float side = static_cast<float>(size_), reach = static_cast<float>(options_.sensing_radius);
  const float reach_squared = reach * reach, half_squared = reach_squared / 4;
  float to_go = 0, near_target = 0;
  int crashed = 0, near = 0, nearer = 0;
  for (int n = 0; n < uavs_; ++n) crashed += all_.status[first + n] == UavStatus::kCrashed;
  for (int k = 0; k < alive; ++k) {
    const float distance = all_.distance[first + scratch_.uav[k]];
    to_go += distance / side;
    near_target += distance / (distance + 1);
    for (int l = k + 1; l < alive; ++l) {
      const float dx = scratch_.x[l] - scratch_.x[k], dy = scratch_.y[l] - scratch_.y[k];
      const float squared = dx * dx + dy * dy;
      near += squared <= reach_squared;
      nearer += squared <= half_squared;
    }
  }
  const float team = static_cast<float>(uavs_);
  state[0] = static_cast<float>(alive) / team;
  state[1] = static_cast<float>(crashed) / team;
  state[2] = static_cast<float>(uavs_ - alive - crashed) / team;
  state[3] = to_go / team;
  state[4] = near_target / team;
  state[5] = static_cast<float>(near) / team;
  state[6] = static_cast<float>(nearer) / team;
}

void UavWorld::DescribeSearch(int env, float* state) const {
  const size_t first = size_t(env) * uavs_;
  const float side = static_cast<float>(size_);
  for (int n = 0; n < uavs_; ++n) {
    float* const own = state + n * layout_.uav_floats;
    std::fill_n(own, layout_.uav_floats, 0.0f);
    const size_t uav = first + n;
    if (all_.status[uav] != UavStatus::kAlive) continue;
    own[0] = 1;
    own[1] = 2 * all_.x[uav] / side - 1;
    own[2] = 2 * all_.y[uav] / side - 1;
    own[3] = all_.vx[uav] / speed_;
    own[4] = all_.vy[uav] / speed_;
  }
  grid_.WriteOccupiedShares(env, state + layout_.global_occupancy);
  grid_.WriteUnvisitedShares(env, state + layout_.global_unvisited);
}

}  // namespace skein
