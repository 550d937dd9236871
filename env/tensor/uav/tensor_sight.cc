// SPDX-License-Identifier: Apache-2.0
#include "env/tensor/uav/tensor_sight.h"

#include <torch/types.h>
#include <torch/utils.h>

#include <algorithm>
#include <vector>

namespace skein {
namespace {

using torch::indexing::Slice;

// A neighbour's key is its squared distance, whose bits as a number are in the same order, and then its number: a whole
// number, which a double holds exactly.
constexpr int64_t kNumbers = 256;
constexpr double kNobody = 0x1p52;

}  // namespace

TensorSight::TensorSight(UavTask task, const UavOptions& options, const UavLayout& layout, const TensorArena* arena)
    : task_(task),
      options_(options),
      layout_(layout),
      arena_(*arena),
      uavs_(options.uavs),
      side_(arena_.Scalar(options.size)),
      speed_divisor_(arena_.Scalar(static_cast<float>(options.speed))),
      reach_divisor_(arena_.Scalar(options.sensing_radius)),
      step_limit_(arena_.Scalar(kUavStepLimit)),
      team_(arena_.Scalar(options.uavs)) {}

TensorSight::View TensorSight::Look(const TensorUavState& state, const torch::Tensor& worlds,
                                    const torch::Tensor& squares) const {
  const auto of = [&](const torch::Tensor& all) { return worlds.defined() ? all.index_select(0, worlds) : all; };
  View view;
  view.x = of(state.x);
  view.y = of(state.y);
  view.vx = of(state.vx);
  view.vy = of(state.vy);
  view.target_x = of(state.target_x);
  view.target_y = of(state.target_y);
  view.distance = of(state.distance);
  const torch::Tensor status = of(state.status);
  view.active = status == static_cast<int64_t>(UavStatus::kAlive);
  view.crashed = status == static_cast<int64_t>(UavStatus::kCrashed);
  view.step = of(state.step);
  view.row = of(state.Row());
  if (task_ == UavTask::kCover) view.unvisited_cells = of(state.unvisited_cells);
  if (!worlds.defined()) view.squares = squares;
  return view;
}

torch::Tensor TensorSight::Squares(const View& view) const {
  return view.squares.defined() ? view.squares : arena_.PairSquares(view.x, view.y, view.active);
}

torch::Tensor TensorSight::TimeLeft(const torch::Tensor& step) const {
  return (1 - step.to(torch::kFloat32) / step_limit_).clamp_min_(0);
}

torch::Tensor TensorSight::Patch(const torch::Tensor& maps, const View& view, const torch::Tensor& i,
                                 const torch::Tensor& j) const {
  const int64_t side = layout_.patch_side, reach = options_.sensing_radius;
  const torch::Tensor windows = maps.view({-1, arena_.stride, arena_.stride}).unfold(1, side, 1).unfold(2, side, 1);
  return windows.index({view.row.unsqueeze(1), j + (arena_.pad - reach), i + (arena_.pad - reach)})
      .reshape({i.size(0), uavs_, side * side})
      .to(torch::kFloat32);
}

torch::Tensor TensorSight::Neighbours(const View& view) const {
  const int64_t worlds = view.x.size(0), most = options_.neighbours, found = std::min<int64_t>(most, uavs_);
  const auto floats = view.x.options();
  if (found == 0) return torch::zeros({worlds, uavs_, most * kUavNeighbourFloats}, floats);
  const auto reach = static_cast<float>(options_.sensing_radius);
  const auto without = [](const torch::Tensor& keys, const torch::Tensor& these) {
    return torch::maximum(keys, these.to(torch::kFloat64).mul_(kNobody));
  };
  const torch::Tensor squares = Squares(view);
  torch::Tensor keys = squares.view(torch::kInt32).to(torch::kFloat64) * kNumbers + arena_.number;
  keys = without(keys, squares > reach * reach);
  std::vector<torch::Tensor> nearest;
  for (int64_t k = 0; k < found; ++k) {
    nearest.push_back(keys.amin(0));
    if (k + 1 < found) keys = without(keys, keys == nearest.back());
  }
  const torch::Tensor key = torch::stack(nearest, 2);  // [worlds, N, found]
  const torch::Tensor there = key < kNobody;
  const torch::Tensor who = key.to(torch::kInt64).bitwise_and(kNumbers - 1).mul_(there).view({worlds, uavs_ * found});
  const auto less_own = [&](const torch::Tensor& all) {
    return all.gather(1, who).view({worlds, uavs_, found}) - all.unsqueeze(2);
  };
  const torch::Tensor seen = torch::stack({less_own(view.x) / reach_divisor_, less_own(view.y) / reach_divisor_,
                                           less_own(view.vx) / speed_divisor_, less_own(view.vy) / speed_divisor_,
                                           torch::ones({worlds, uavs_, found}, floats)},
                                          3)
                                 .mul_(there.to(torch::kFloat32).unsqueeze(3))
                                 .view({worlds, uavs_, found * kUavNeighbourFloats});
  if (found == most) return seen;
  return torch::cat({seen, torch::zeros({worlds, uavs_, (most - found) * kUavNeighbourFloats}, floats)}, 2);
}

void TensorSight::WriteObs(const TensorUavState& state, const torch::Tensor& worlds, const torch::Tensor& squares,
                           torch::Tensor obs) const {
  const torch::NoGradGuard no_grad;
  const View view = Look(state, worlds, squares);
  const torch::Tensor i = view.x.floor(), j = view.y.floor();
  std::vector<torch::Tensor> numbers = {view.x * 2 / side_ - 1,
                                        view.y * 2 / side_ - 1,
                                        (view.x - i) * 2 - 1,
                                        (view.y - j) * 2 - 1,
                                        view.vx / speed_divisor_,
                                        view.vy / speed_divisor_,
                                        TimeLeft(view.step).unsqueeze(1).expand_as(view.x)};
  if (task_ == UavTask::kNavigate) {
    const torch::Tensor dx = view.target_x - view.x, dy = view.target_y - view.y;
    // The distance of one that takes no part may be 0, and what is multiplied with 0 in the end must be finite.
    const torch::Tensor distance = view.distance.masked_fill(view.active.logical_not(), 1);
    for (const torch::Tensor& number :
         {dx / side_, dy / side_, dx / distance, dy / distance, distance / (distance + 1)}) {
      numbers.push_back(number);
    }
  }
  const auto headings = [](const torch::Tensor& of_choices) {
    return of_choices.index({Slice(1, torch::indexing::None)}).view({-1, 1, 1});
  };
  const TensorArena::Flight flight = {view.x, view.y, headings(arena_.step_x), headings(arena_.step_y)};
  const torch::Tensor feelers =
      arena_.Fly(state.around, flight, view.x + flight.vx, view.y + flight.vy, view.row.unsqueeze(1))
          .hit.permute({1, 2, 0})
          .to(torch::kFloat32);
  const torch::Tensor column = i.to(torch::kInt64), line = j.to(torch::kInt64);
  std::vector<torch::Tensor> parts = {torch::stack(numbers, 2), feelers, Patch(state.occupied, view, column, line)};
  if (task_ == UavTask::kCover) parts.push_back(Patch(state.unvisited, view, column, line));
  parts.push_back(Neighbours(view));
  torch::cat_out(obs, parts, 2);
  obs.mul_(view.active.to(torch::kFloat32).unsqueeze(2));
}

void TensorSight::WriteState(const TensorUavState& state, const torch::Tensor& worlds, const torch::Tensor& squares,
                             torch::Tensor global) const {
  const torch::NoGradGuard no_grad;
  const View view = Look(state, worlds, squares);
  torch::cat_out(global, task_ == UavTask::kNavigate ? DescribeTeam(view) : DescribeSearch(state, view), 1);
}

std::vector<torch::Tensor> TensorSight::DescribeTeam(const View& view) const {
  const auto reach = static_cast<float>(options_.sensing_radius);
  const torch::Tensor& distance = view.distance;
  const torch::Tensor absent = view.active.logical_not();
  const auto sum = [&absent](const torch::Tensor& of_each) { return of_each.masked_fill(absent, 0).sum(1); };
  const auto count = [](const torch::Tensor& which) { return which.sum(1).to(torch::kFloat32); };
  // Each pair is there twice.
  const auto pairs = [squares = Squares(view)](float most) {
    return (squares <= most).to(torch::kFloat32).sum(torch::IntArrayRef({0, 2})) / 2;
  };
  const torch::Tensor alive = count(view.active), crashed = count(view.crashed);
  const torch::Tensor figures =
      torch::stack({alive, crashed, static_cast<double>(uavs_) - alive - crashed, sum(distance / side_),
                    sum(distance / (distance + 1)), pairs(reach * reach), pairs(reach * reach / 4)},
                   1);
  return {figures / team_, TimeLeft(view.step).unsqueeze(1)};
}

std::vector<torch::Tensor> TensorSight::DescribeSearch(const TensorUavState& state, const View& view) const {
  const torch::Tensor uavs = torch::stack({torch::ones_like(view.x), view.x * 2 / side_ - 1, view.y * 2 / side_ - 1,
                                           view.vx / speed_divisor_, view.vy / speed_divisor_},
                                          2)
                                 .masked_fill_(view.active.logical_not().unsqueeze(2), 0)
                                 .view({view.x.size(0), uavs_ * layout_.uav_floats});
  return {uavs, TimeLeft(view.step).unsqueeze(1), state.occupied_share.index_select(0, view.row),
          view.unvisited_cells / arena_.block_cells};
}

}  // namespace skein
