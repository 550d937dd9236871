// SPDX-License-Identifier: Apache-2.0
// Beginning, saving and loading.
#include <torch/types.h>
#include <torch/utils.h>

#include <algorithm>
#include <limits>

#include "env/tensor/uav/tensor_world.h"

namespace skein {
namespace {

constexpr double kFar = std::numeric_limits<float>::max();
constexpr double kMaxWord = 4294967295.0;
constexpr int kPathRatio = 3;  // Among the metrics of UavNavigate.

// Bits [K, words * 32] as numbers [K, words], and back.
torch::Tensor Powers() {
  return torch::full({kUavCellsInWord}, 2, torch::kInt64).pow(torch::arange(kUavCellsInWord, torch::kInt64));
}

torch::Tensor Pack(const torch::Tensor& bits, int64_t words) {
  const torch::Tensor padded =
      torch::constant_pad_nd(bits.to(torch::kInt64), {0, words * kUavCellsInWord - bits.size(1)});
  return (padded.view({-1, words, kUavCellsInWord}) * Powers()).sum(2).to(torch::kFloat64);
}

torch::Tensor Unpack(const torch::Tensor& packed, int64_t cells) {
  const torch::Tensor words = packed.clamp(0, kMaxWord).to(torch::kInt64).unsqueeze(2);
  return words.floor_divide(Powers()).bitwise_and(1).reshape({packed.size(0), -1}).narrow(1, 0, cells);
}

}  // namespace

void TensorWorld::BeginAll(int64_t episode) {
  const torch::NoGradGuard no_grad;
  const auto on = [this](torch::ScalarType type) { return torch::TensorOptions(type).device(device_); };
  const auto integers = on(torch::kInt64), floats = on(torch::kFloat32), bytes = on(torch::kUInt8);
  const int64_t blocks = arena_.block_cells.size(0), seen = options_.task == UavTask::kCover ? envs_ : 0;
  TensorUavState& state = state_;
  // As if the one before had ended.
  state.episode = torch::full({envs_}, episode - 1, integers);
  for (torch::Tensor* tensor : {&state.step, &state.left_to_visit, &state.free}) {
    *tensor = torch::zeros({envs_}, integers);
  }
  state.next_episode = torch::full({envs_}, episode - 1, integers);
  state.episode_return = torch::zeros({envs_}, on(torch::kFloat64));
  state.separation_squared = torch::full({envs_}, kFar, floats);
  for (torch::Tensor* tensor :
       {&state.x, &state.y, &state.vx, &state.vy, &state.target_x, &state.target_y, &state.distance, &state.flown}) {
    *tensor = torch::zeros({envs_, uavs_}, floats);
  }
  for (torch::Tensor* tensor : {&state.start, &state.target, &state.next_start, &state.next_target}) {
    *tensor = torch::zeros({envs_, uavs_}, integers);
  }
  state.status = torch::zeros({envs_, uavs_}, bytes);
  state.occupied = torch::zeros({2 * envs_, arena_.grid_size}, bytes);
  state.unvisited = torch::zeros({2 * envs_, arena_.grid_size}, bytes);
  state.around = torch::zeros({2 * envs_, arena_.grid_size}, on(torch::kInt32));
  state.occupied_share = torch::zeros({2 * envs_, blocks}, floats);
  state.unvisited_cells = torch::zeros({seen, blocks}, floats);
  state.next_unvisited_cells = torch::zeros({seen, blocks}, floats);
  missed_ = torch::zeros({}, on(torch::kBool));
  ended_ = torch::zeros({envs_}, on(torch::kBool));
  Prepare(worlds_, state.episode + 1);
  Begin(torch::ones_like(ended_));
  Prepare(worlds_, state.episode + 1);
}

torch::Tensor TensorWorld::SaveState() const {
  const torch::NoGradGuard no_grad;
  const auto column = [](const torch::Tensor& values) { return values.to(torch::kCPU, torch::kFloat64).unsqueeze(1); };
  const torch::Tensor row = state_.Row();
  const auto cells = [&](const torch::Tensor& maps) {
    return maps.index_select(0, row).index_select(1, arena_.padded_index).cpu();
  };
  const torch::Tensor occupied = cells(state_.occupied), unvisited = cells(state_.unvisited);
  const torch::Tensor visited = torch::logical_and(occupied == 0, unvisited == 0);
  std::vector<torch::Tensor> uavs;
  for (const torch::Tensor* values :
       {&state_.x, &state_.y, &state_.vx, &state_.vy, &state_.status, &state_.flown, &state_.start, &state_.target}) {
    uavs.push_back(values->to(torch::kCPU, torch::kFloat64));
  }
  return torch::cat({column(state_.episode), column(state_.step), column(state_.episode_return), column(state_.step),
                     column(state_.separation_squared), Pack(occupied, layout_.words), Pack(visited, layout_.words),
                     torch::stack(uavs, 2).view({envs_, uavs_ * kUavSavedDoubles})},
                    1);
}

absl::Status TensorWorld::LoadState(const torch::Tensor& saved) {
  if (absl::Status status = CheckRows(saved); !status.ok()) return status;
  const torch::NoGradGuard no_grad;
  ResetAll();  // Gives all tensors their shapes.
  TensorUavState& state = state_;
  const torch::Tensor rows = saved.contiguous(), own = rows.narrow(1, kBookkeeping, layout_.saved_size);
  const auto column = [&](const torch::Tensor& table, int64_t at, torch::ScalarType type) {
    return table.select(1, at).contiguous().to(device_, type);
  };
  state.episode = column(rows, 0, torch::kInt64);
  state.episode_return = column(rows, 2, torch::kFloat64);
  state.step = column(rows, 1, torch::kInt64);
  state.separation_squared = own.select(1, 1).clamp(0, kFar).to(device_, torch::kFloat32);

  const torch::Tensor uavs =
      own.narrow(1, layout_.saved_uavs, uavs_ * kUavSavedDoubles).reshape({envs_, uavs_, kUavSavedDoubles});
  const auto real = [&](int64_t at, double low, double high, torch::ScalarType type) {
    return uavs.select(2, at).clamp(low, high).contiguous().to(device_, type);
  };
  const double edge = static_cast<double>(arena_.size) + 0.99, last = layout_.cells - 1.0;
  state.x = real(0, -1, edge, torch::kFloat32);
  state.y = real(1, -1, edge, torch::kFloat32);
  state.vx = real(2, -1, 1, torch::kFloat32);
  state.vy = real(3, -1, 1, torch::kFloat32);
  state.status = real(4, 0, 2, torch::kUInt8);
  state.flown = real(5, 0, kFar, torch::kFloat32);
  state.start = real(6, 0, last, torch::kInt64);
  state.target = real(7, 0, last, torch::kInt64);
  state.target_x = state.target.remainder(arena_.size).to(torch::kFloat32) + 0.5;
  state.target_y = state.target.floor_divide(arena_.size).to(torch::kFloat32) + 0.5;
  const torch::Tensor dx = state.target_x - state.x, dy = state.target_y - state.y;
  state.distance = (dx * dx + dy * dy).sqrt();

  const torch::Tensor blocked =
      Unpack(own.narrow(1, layout_.saved_obstacles, layout_.words), layout_.cells).to(device_, torch::kUInt8);
  const torch::Tensor visited =
      Unpack(own.narrow(1, layout_.saved_visited, layout_.words), layout_.cells).to(device_, torch::kUInt8);
  const torch::Tensor fresh = torch::logical_and(blocked == 0, visited == 0).to(torch::kUInt8);
  const torch::Tensor row = state_.Row();
  const torch::Tensor occupied = arena_.walls.expand({envs_, -1}).clone().index_copy_(1, arena_.padded_index, blocked);
  state.occupied.index_copy_(0, row, occupied);
  state.around.index_copy_(0, row, arena_.Around(occupied));
  state.unvisited.index_copy_(0, row, torch::zeros_like(occupied).index_copy_(1, arena_.padded_index, fresh));
  const torch::Tensor block = arena_.block.take(arena_.padded_index).expand({envs_, -1});
  const auto per_block = [&](const torch::Tensor& cells) {
    return torch::zeros({envs_, arena_.block_cells.size(0)}, arena_.block_cells.options())
        .scatter_add_(1, block, cells.to(torch::kFloat32));
  };
  state.occupied_share.index_copy_(0, row, per_block(blocked) / arena_.block_cells);
  if (options_.task == UavTask::kCover) state.unvisited_cells = per_block(fresh);
  state.free = (blocked == 0).sum(1);
  state.left_to_visit = fresh.sum(1, /*keepdim=*/false, torch::kInt64);
  squares_ = torch::Tensor();
  Prepare(worlds_, state.episode + 1);
  return absl::OkStatus();
}

std::vector<int64_t> TensorWorld::Steps() const {
  const torch::Tensor steps = state_.step.cpu().contiguous();
  return {steps.data_ptr<int64_t>(), steps.data_ptr<int64_t>() + envs_};
}

TensorWorld::Snapshot TensorWorld::Save() const {
  Snapshot snapshot;
  TensorUavState copy = state_;  // Shares the tensors.
  copy.Each([&](torch::Tensor* tensor) { snapshot.tensors.push_back(tensor->clone()); });
  return snapshot;
}

void TensorWorld::Restore(const Snapshot& snapshot) {
  auto tensor = snapshot.tensors.begin();
  state_.Each([&](torch::Tensor* own) { *own = (tensor++)->clone(); });
  missed_ = torch::zeros_like(missed_);
  ended_ = torch::zeros_like(ended_);
  squares_ = torch::Tensor();
}

std::vector<torch::Tensor*> TensorWorld::Tensors() {
  squares_ = torch::Tensor();
  std::vector<torch::Tensor*> tensors = {&missed_, &ended_};
  state_.Each([&](torch::Tensor* tensor) { tensors.push_back(tensor); });
  return tensors;
}

void TensorWorld::BeginRollout() {
  if (prepared_before_ == 0 && prepared_per_step_ < envs_) before_ = Save();
}

bool TensorWorld::EndRollout() {
  if (prepared_before_ > 0) {
    PrepareAtOnce(2 * prepared_before_);  // More from now on.
    prepared_before_ = 0;
  } else if (prepared_per_step_ < envs_ && missed()) {
    Restore(before_);
    prepared_before_ = prepared_per_step_;
    PrepareAtOnce(envs_);
    return false;
  }
  before_ = {};
  return true;
}

void TensorWorld::FinishMetrics(uint64_t env_index, const std::vector<torch::Tensor>& notes, float* metrics) const {
  if (options_.task == UavTask::kCover) return;
  if (native_ == nullptr) native_ = std::make_unique<UavWorld>(options_.task, options_.uav, 1);
  RandomStream random(options_.seed, options_.reset_purpose, env_index, notes[0].item<int64_t>());
  native_->Reset(0, random);
  std::vector<double> state(layout_.saved_size);
  native_->SaveState(0, state.data());
  const auto* const status = notes[1].data_ptr<uint8_t>();
  const auto* const flown = notes[2].data_ptr<float>();
  for (int64_t n = 0; n < uavs_; ++n) {
    double* const own = state.data() + layout_.saved_uavs + n * kUavSavedDoubles;
    own[4] = status[n];
    own[5] = double{flown[n]};
  }
  native_->LoadState(0, state.data());
  std::vector<float> native_metrics(spec_.episode_metrics.size());
  native_->EpisodeMetrics(0, native_metrics.data());
  metrics[kPathRatio] = native_metrics[kPathRatio];
}

}  // namespace skein
