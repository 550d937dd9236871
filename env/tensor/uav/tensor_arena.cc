// SPDX-License-Identifier: Apache-2.0
#include "env/tensor/uav/tensor_arena.h"

#include <torch/types.h>
#include <torch/utils.h>

#include <limits>
#include <utility>
#include <vector>

#include "env/uav/uav_contact.h"

namespace skein {
namespace {

constexpr float kFar = std::numeric_limits<float>::max();
constexpr int kAroundCentre = 4;  // Bit of a cell itself.
constexpr int kCellBits = 9, kCornersInRow = 4;

}  // namespace

TensorArena::TensorArena(const UavOptions& options, const UavLayout& layout, torch::Device on)
    : size(options.size),
      pad(options.sensing_radius + 2),
      stride(size + 2 * pad),
      grid_size(stride * stride),
      radius(static_cast<float>(options.radius)),
      reach(ReachOfAStep(radius, static_cast<float>(options.speed))),
      device(on) {
  const torch::NoGradGuard no_grad;
  const float speed = static_cast<float>(options.speed);
  std::vector<float> along_x, along_y;
  for (int choice = 0; choice < kUavChoices; ++choice) {
    along_x.push_back(speed * kUavDirectionX[choice]);
    along_y.push_back(speed * kUavDirectionY[choice]);
  }
  step_x = torch::tensor(along_x, torch::kFloat32).to(device);
  step_y = torch::tensor(along_y, torch::kFloat32).to(device);

  const int64_t side = layout.map_side;
  const torch::Tensor cell = torch::arange(layout.cells, torch::kInt64);
  const torch::Tensor i = cell.remainder(size), j = cell.floor_divide(size);
  const torch::Tensor padded = (j + pad) * stride + i + pad;
  const torch::Tensor cell_block = (j * side).floor_divide(size) * side + (i * side).floor_divide(size);
  const torch::Tensor inside = torch::zeros({grid_size}, torch::kUInt8).index_fill_(0, padded, 1);
  cells = cell.to(device);
  padded_index = padded.to(device);
  open = inside.to(device);
  walls = (1 - inside).to(device);
  block = torch::zeros({grid_size}, torch::kInt64).index_copy_(0, padded, cell_block).to(device);
  block_cells = torch::zeros({side * side}).index_add_(0, cell_block, torch::ones({layout.cells})).to(device);
  const torch::Tensor uav = torch::arange(int64_t{options.uavs}, torch::TensorOptions(torch::kInt64).device(device));
  number = uav.view({-1, 1, 1});
  self = (number == uav).to(torch::kFloat32) * kFar;
  earlier = number < uav;

  std::vector<float> corners_x, corners_y;
  std::vector<int32_t> bits;
  for (int b = 1 - reach; b <= reach; ++b) {
    for (int a = 1 - reach; a <= reach; ++a) {
      corners_x.push_back(static_cast<float>(a));
      corners_y.push_back(static_cast<float>(b));
      bits.push_back(kCellBits + kCornersInRow * (b + 1) + a + 1);
    }
  }
  corner_x = torch::tensor(corners_x, torch::kFloat32).view({-1, 1, 1, 1}).to(device);
  corner_y = torch::tensor(corners_y, torch::kFloat32).view({-1, 1, 1, 1}).to(device);
  corner_bit = torch::tensor(bits, torch::kInt32).view({-1, 1, 1, 1}).to(device);
}

torch::Tensor TensorArena::Scalar(double value) const {
  return torch::full({}, value, torch::TensorOptions(torch::kFloat32).device(device));
}

TensorArena::Touched TensorArena::Touch(const torch::Tensor& around, const torch::Tensor& x, const torch::Tensor& y,
                                        const torch::Tensor& row) const {
  Touched touched;
  touched.i = x.floor();
  touched.j = y.floor();
  touched.cell = (touched.j.to(torch::kInt64) + pad) * stride + (touched.i.to(torch::kInt64) + pad) + row * grid_size;
  touched.bits = around.view(-1).take(touched.cell);
  // -1, 0 or 1: the side that is nearer than the radius; and the gap to it.
  const auto nearest = [this](const torch::Tensor& place) {
    const torch::Tensor low = place < radius, gap = 1 - place;
    return std::make_pair((gap < radius).to(torch::kInt32).masked_fill_(low, -1), torch::where(low, place, gap));
  };
  const auto [hx, ex] = nearest(x - touched.i);
  const auto [hy, ey] = nearest(y - touched.j);
  const torch::Tensor corner = (ex * ex + ey * ey < radius * radius).to(torch::kInt32);
  const torch::Tensor to_side = hx + kAroundCentre, to_row = hy * 3;
  torch::Tensor occupied = touched.bits.bitwise_right_shift(to_side + to_row).bitwise_and_(corner);
  occupied.bitwise_or_(touched.bits.bitwise_right_shift(kAroundCentre));
  occupied.bitwise_or_(touched.bits.bitwise_right_shift(to_side));
  occupied.bitwise_or_(touched.bits.bitwise_right_shift(to_row + kAroundCentre));
  touched.hit = occupied.bitwise_and_(1).to(torch::kBool);
  return touched;
}

torch::Tensor TensorArena::PassesCorner(const Touched& start, const Flight& flight) const {
  const torch::Tensor f = flight.x - start.i, g = flight.y - start.j;
  const torch::Tensor &vx = flight.vx, &vy = flight.vy;
  const torch::Tensor squared = vx * vx + vy * vy;
  const torch::Tensor along = (corner_x * vx + corner_y * vy) - (f * vx + g * vy);  // [C, H, K, N]
  const torch::Tensor aside = (corner_x * vy - corner_y * vx) - (f * vy - g * vx);
  const torch::Tensor occupied = start.bits.bitwise_right_shift(corner_bit).bitwise_and_(1);
  return (along > 0)
      .logical_and_(along < squared)
      .logical_and_(aside * aside < squared * (radius * radius))
      .logical_and_(occupied)
      .any(0);
}

torch::Tensor TensorArena::PassesCell(const Touched& start, const Touched& end, const Flight& flight) const {
  const torch::Tensor di = (end.i - start.i).sign(), dj = (end.j - start.j).sign();
  const torch::Tensor to_column = di.clamp_min(0) - (flight.x - start.i),
                      to_row = dj.clamp_min(0) - (flight.y - start.j);
  const torch::Tensor column_first = (to_column * flight.vy).abs() < (to_row * flight.vx).abs();
  const torch::Tensor bit = torch::where(column_first, di, dj * 3).to(torch::kInt32) + kAroundCentre;
  return start.bits.bitwise_right_shift(bit).bitwise_and_(1).logical_and(di * dj);
}

TensorArena::Contact TensorArena::Fly(const torch::Tensor& around, const Flight& flight, const torch::Tensor& end_x,
                                      const torch::Tensor& end_y, const torch::Tensor& row) const {
  const Touched start = Touch(around, flight.x, flight.y, row), end = Touch(around, end_x, end_y, row);
  const torch::Tensor between = PassesCorner(start, flight).logical_or_(PassesCell(start, end, flight));
  return {end.cell, between.logical_or_(start.hit).logical_or_(end.hit)};
}

torch::Tensor TensorArena::PairSquares(const torch::Tensor& x, const torch::Tensor& y,
                                       const torch::Tensor& active) const {
  // Others first: what is reduced over them reads along worlds. Those that do not count are raised to kFar, which is
  // much cheaper on a CPU than choosing.
  const auto first = [](const torch::Tensor& tensor) { return tensor.t().contiguous().unsqueeze(2); };
  const torch::Tensor dx = first(x) - x, dy = first(y) - y;
  const torch::Tensor absent = active.logical_not().to(torch::kFloat32) * kFar;
  const torch::Tensor squared = dx * dx + dy * dy;
  return torch::maximum(torch::maximum(squared, first(absent)), torch::maximum(absent, self));
}

torch::Tensor TensorArena::NearestSquares(const Flight& flight, const torch::Tensor& end_x, const torch::Tensor& end_y,
                                          const torch::Tensor& active) const {
  // Worlds last: [N, N, K].
  const auto difference = [](const torch::Tensor& of_each) {
    const torch::Tensor uavs_first = of_each.t().contiguous();
    return uavs_first.unsqueeze(1) - uavs_first;
  };
  const torch::Tensor dx = difference(flight.x), dy = difference(flight.y);
  const torch::Tensor wx = difference(flight.vx), wy = difference(flight.vy);
  const torch::Tensor ex = difference(end_x), ey = difference(end_y);
  const torch::Tensor at_the_ends = torch::minimum(dx * dx + dy * dy, ex * ex + ey * ey);
  const torch::Tensor along = (dx * wx + dy * wy).neg_(), squared = wx * wx + wy * wy;
  const torch::Tensor aside = dx * wy - dy * wx;
  const torch::Tensor outside = (along <= 0).logical_or_(along >= squared);
  const torch::Tensor between = (aside * aside / squared).masked_fill_(outside, kFar);
  const torch::Tensor absent = active.logical_not().to(torch::kFloat32).mul_(kFar).t().contiguous();
  const torch::Tensor others = torch::maximum(absent.unsqueeze(1), self.transpose(1, 2));
  return torch::maximum(torch::maximum(torch::minimum(at_the_ends, between), others).amin(0), absent).t();
}

torch::Tensor TensorArena::Around(const torch::Tensor& occupied) const {
  const int64_t worlds = occupied.size(0), inner = stride - 2;
  const torch::Tensor cells = occupied.view({worlds, stride, stride}).to(torch::kInt32);
  torch::Tensor around = torch::zeros_like(cells);
  torch::Tensor middle = around.narrow(1, 1, inner).narrow(2, 1, inner);
  for (int64_t b = 0; b < 3; ++b) {
    for (int64_t a = 0; a < 3; ++a) {
      middle.add_(cells.narrow(1, b, inner).narrow(2, a, inner), int64_t{1} << (3 * b + a));
    }
  }
  // [K, stride - 1, stride - 1], the corners between four cells.
  torch::Tensor corners = torch::zeros_like(cells.narrow(1, 1, stride - 1).narrow(2, 1, stride - 1));
  for (int64_t b = 0; b < 2; ++b) {
    for (int64_t a = 0; a < 2; ++a) {
      corners.bitwise_or_(cells.narrow(1, b, stride - 1).narrow(2, a, stride - 1));
    }
  }
  torch::Tensor centre = around.narrow(1, 2, stride - 4).narrow(2, 2, stride - 4);
  for (int64_t b = 0; b < kCornersInRow; ++b) {
    for (int64_t a = 0; a < kCornersInRow; ++a) {
      centre.add_(corners.narrow(1, b, stride - 4).narrow(2, a, stride - 4),
                  int64_t{1} << (kCellBits + kCornersInRow * b + a));
    }
  }
  return around.view({worlds, grid_size});
}

torch::Tensor TensorArena::BlockCounts(const torch::Tensor& padded_cells) const {
  const auto floats = block_cells.options();
  return torch::zeros({padded_cells.size(0), block_cells.size(0)}, floats)
      .scatter_add_(1, block.take(padded_cells), torch::ones(padded_cells.sizes(), floats));
}

}  // namespace skein
