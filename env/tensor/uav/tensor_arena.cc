// SPDX-License-Identifier: Apache-2.0
#include "env/tensor/uav/tensor_arena.h"

#include <torch/types.h>
#include <torch/utils.h>

#include <limits>
#include <utility>
#include <vector>

namespace skein {
namespace {

constexpr float kFar = std::numeric_limits<float>::max();
constexpr int kAroundCentre = 4;  // Bit of a cell itself.

}  // namespace

TensorArena::TensorArena(const UavOptions& options, const UavLayout& layout, torch::Device on)
    : size(options.size),
      pad(options.sensing_radius + 2),
      stride(size + 2 * pad),
      grid_size(stride * stride),
      radius(static_cast<float>(options.radius)),
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
}

torch::Tensor TensorArena::Scalar(double value) const {
  return torch::full({}, value, torch::TensorOptions(torch::kFloat32).device(device));
}

TensorArena::Contact TensorArena::Touch(const torch::Tensor& around, const torch::Tensor& x, const torch::Tensor& y,
                                        const torch::Tensor& row) const {
  const torch::Tensor i = x.floor(), j = y.floor();
  Contact contact;
  contact.cell = (j.to(torch::kInt64) + pad) * stride + (i.to(torch::kInt64) + pad) + row * grid_size;
  // -1, 0 or 1: the side that is nearer than the radius; and the gap to it.
  const auto nearest = [this](const torch::Tensor& place) {
    const torch::Tensor low = place < radius, gap = 1 - place;
    return std::make_pair((gap < radius).to(torch::kInt32).masked_fill_(low, -1), torch::where(low, place, gap));
  };
  const auto [hx, ex] = nearest(x - i);
  const auto [hy, ey] = nearest(y - j);
  const torch::Tensor corner = (ex * ex + ey * ey < radius * radius).to(torch::kInt32);
  const torch::Tensor bits = around.view(-1).take(contact.cell).to(torch::kInt32);
  const torch::Tensor to_side = hx + kAroundCentre, to_row = hy * 3;
  torch::Tensor occupied = bits.bitwise_right_shift(to_side + to_row).bitwise_and_(corner);
  occupied.bitwise_or_(bits.bitwise_right_shift(kAroundCentre));
  occupied.bitwise_or_(bits.bitwise_right_shift(to_side));
  occupied.bitwise_or_(bits.bitwise_right_shift(to_row + kAroundCentre));
  contact.hit = occupied.bitwise_and_(1).to(torch::kBool);
  return contact;
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

torch::Tensor TensorArena::Around(const torch::Tensor& occupied) const {
  const int64_t worlds = occupied.size(0), inner = stride - 2;
  const torch::Tensor cells = occupied.view({worlds, stride, stride}).to(torch::kInt16);
  torch::Tensor around = torch::zeros_like(cells);
  torch::Tensor middle = around.narrow(1, 1, inner).narrow(2, 1, inner);
  for (int64_t b = 0; b < 3; ++b) {
    for (int64_t a = 0; a < 3; ++a) {
      middle.add_(cells.narrow(1, b, inner).narrow(2, a, inner), int64_t{1} << (3 * b + a));
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
