// SPDX-License-Identifier: Apache-2.0
// How episodes begin.
#include <torch/types.h>
#include <torch/utils.h>

#include <limits>

#include "env/tensor/uav/tensor_world.h"

namespace skein {
namespace {

constexpr float kFar = std::numeric_limits<float>::max();
constexpr int64_t kCellBits = 16;  // Of a key, as docs/environments.md says.

}  // namespace

void TensorWorld::Prepare(const torch::Tensor& worlds, const torch::Tensor& episode) {
  const bool navigate = options_.task == UavTask::kNavigate;
  const int64_t count = worlds.size(0), obstacles = options_.uav.obstacles;
  const torch::Tensor words = philox_.Words(env_index_.index_select(0, worlds), episode, 0, (layout_.cells + 3) / 4)
                                  .narrow(1, 0, layout_.cells);
  const torch::Tensor keys = words * (int64_t{1} << kCellBits) + arena_.cells;
  const torch::Tensor order = std::get<0>(keys.topk(obstacles + (navigate ? 2 : 1) * uavs_, 1,
                                                    /*largest=*/false, /*sorted=*/true))
                                  .bitwise_and_((int64_t{1} << kCellBits) - 1);
  const torch::Tensor blocked = arena_.padded_index.take(order.narrow(1, 0, obstacles));
  const torch::Tensor start = order.narrow(1, obstacles, uavs_).contiguous();
  const torch::Tensor target = navigate ? order.narrow(1, obstacles + uavs_, uavs_) : start;
  const torch::Tensor begun = arena_.padded_index.take(start);
  const auto grids = [count](const torch::Tensor& grid) { return grid.expand({count, -1}).clone(); };
  const torch::Tensor occupied = grids(arena_.walls).scatter_(1, blocked, 1);
  const torch::Tensor unvisited = grids(arena_.open).scatter_(1, blocked, 0).scatter_(1, begun, 0);

  const torch::Tensor row = worlds * 2 + episode.bitwise_and(1);
  const torch::Tensor in_block = arena_.BlockCounts(blocked);
  state_.occupied.index_copy_(0, row, occupied);
  state_.unvisited.index_copy_(0, row, unvisited);
  state_.around.index_copy_(0, row, arena_.Around(occupied));
  state_.occupied_share.index_copy_(0, row, in_block / arena_.block_cells);
  state_.next_episode.index_copy_(0, worlds, episode);
  state_.next_start.index_copy_(0, worlds, start);
  state_.next_target.index_copy_(0, worlds, target);
  if (!navigate)
    state_.next_unvisited_cells.index_copy_(0, worlds, arena_.block_cells - in_block - arena_.BlockCounts(begun));
}

void TensorWorld::Begin(const torch::Tensor& begins) {
  TensorUavState& state = state_;
  const torch::Tensor uavs = begins.unsqueeze(1);
  const auto centre = [](const torch::Tensor& coordinate) { return coordinate.to(torch::kFloat32) + 0.5; };
  const auto place = [&](const torch::Tensor& cell, torch::Tensor* x, torch::Tensor* y) {
    *x = torch::where(uavs, centre(cell.remainder(arena_.size)), *x);
    *y = torch::where(uavs, centre(cell.floor_divide(arena_.size)), *y);
  };
  missed_.logical_or_(torch::logical_and(begins, state.next_episode != state.episode + 1).any());
  state.episode = state.episode + begins.to(torch::kInt64);
  state.step = state.step.masked_fill(begins, 0);
  state.episode_return = state.episode_return.masked_fill(begins, 0);
  state.separation_squared = state.separation_squared.masked_fill(begins, kFar);
  const int64_t free = layout_.cells - options_.uav.obstacles;
  state.free = state.free.masked_fill(begins, free);
  state.left_to_visit = state.left_to_visit.masked_fill(begins, free - uavs_);
  place(state.next_start, &state.x, &state.y);
  place(state.next_target, &state.target_x, &state.target_y);
  state.vx = state.vx.masked_fill(uavs, 0);
  state.vy = state.vy.masked_fill(uavs, 0);
  state.flown = state.flown.masked_fill(uavs, 0);
  state.status = state.status.masked_fill(uavs, 0);
  state.start = torch::where(uavs, state.next_start, state.start);
  state.target = torch::where(uavs, state.next_target, state.target);
  const torch::Tensor dx = state.target_x - state.x, dy = state.target_y - state.y;
  state.distance = torch::where(uavs, (dx * dx + dy * dy).sqrt(), state.distance);
  if (options_.task == UavTask::kCover) {
    state.unvisited_cells = torch::where(uavs, state.next_unvisited_cells, state.unvisited_cells);
  }
  MeasureSeparation();
}

// That of episodes that have just begun. All others have counted theirs, and of fewer pairs now.
void TensorWorld::MeasureSeparation() {
  squares_ = arena_.PairSquares(state_.x, state_.y, state_.status == 0);
  state_.separation_squared = torch::minimum(state_.separation_squared, squares_.amin(0).amin(1));
}

void TensorWorld::BeginEpisodes() {
  const torch::NoGradGuard no_grad;
  const torch::Tensor next = state_.episode + 1;
  if (prepared_per_step_ == envs_) {
    Prepare(worlds_, next);
  } else {
    // First those that need their map now, then those that have none.
    const torch::Tensor urgency = (state_.next_episode != next).to(torch::kInt32) * (ended_.to(torch::kInt32) + 1);
    const torch::Tensor chosen = std::get<1>(urgency.topk(prepared_per_step_, 0, /*largest=*/true, /*sorted=*/false));
    Prepare(chosen, next.index_select(0, chosen));
  }
  Begin(ended_);
}

bool TensorWorld::missed() const { return missed_.item<bool>(); }

}  // namespace skein
