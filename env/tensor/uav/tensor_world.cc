// SPDX-License-Identifier: Apache-2.0
#include "env/tensor/uav/tensor_world.h"

#include <torch/types.h>
#include <torch/utils.h>

#include <limits>

namespace skein {
namespace {

constexpr float kFar = std::numeric_limits<float>::max();
// Next episodes' maps made in each step: one for this many worlds, but at least kLeastMaps.
constexpr int64_t kWorldsForAMap = 32;
constexpr int64_t kLeastMaps = 64;
constexpr auto kAlive = static_cast<int64_t>(UavStatus::kAlive);
constexpr auto kArrived = static_cast<int64_t>(UavStatus::kArrived);
constexpr auto kCrashed = static_cast<int64_t>(UavStatus::kCrashed);

}  // namespace

absl::StatusOr<std::unique_ptr<TensorWorld>> TensorWorld::Make(const Options& options) {
  if (absl::Status status = CheckUavOptions(options.uav); !status.ok()) return status;
  if (absl::Status status = CheckOptions(options); !status.ok()) return status;
  return std::unique_ptr<TensorWorld>(new TensorWorld(options));
}

absl::StatusOr<std::unique_ptr<TensorEnv>> MakeTensorUavs(UavTask task, const TensorEnv::Options& options,
                                                          const UavOptions& uav) {
  TensorWorld::Options all;
  static_cast<TensorEnv::Options&>(all) = options;
  all.task = task;
  all.uav = uav;
  all.prepared_per_step = std::max(kLeastMaps, options.worlds / kWorldsForAMap);
  auto world = TensorWorld::Make(all);
  if (!world.ok()) return world.status();
  return std::unique_ptr<TensorEnv>(*std::move(world));
}

TensorWorld::TensorWorld(const Options& options)
    : options_(options),
      layout_(MakeUavLayout(options.task, options.uav)),
      spec_(MakeUavSpec(options.task, options.uav)),
      envs_(options.worlds),
      uavs_(options.uav.uavs),
      device_(options.device),
      philox_(options.seed, options.reset_purpose, options.device),
      arena_(options.uav, layout_, options.device),
      sight_(options.task, options.uav, layout_, &arena_),
      worlds_(torch::arange(envs_, torch::TensorOptions(torch::kInt64).device(device_))),
      env_index_(worlds_.remainder(envs_ / options.copies) + static_cast<int64_t>(options.first_env)),
      team_(arena_.Scalar(static_cast<double>(uavs_))),
      prepared_per_step_(envs_) {
  state_.first_row = worlds_ * 2;
  if (options.max_episode_steps > 0) spec_.max_episode_steps = options.max_episode_steps;
  if (options.prepared_per_step > 0) PrepareAtOnce(options.prepared_per_step);
}

std::pair<torch::Tensor, torch::Tensor> TensorWorld::Velocity(const torch::Tensor& action) const {
  if (!options_.uav.continuous) {
    const torch::Tensor choice = action.view({envs_, uavs_}).to(torch::kInt64).clamp(0, kUavChoices - 1);
    return {arena_.step_x.take(choice), arena_.step_y.take(choice)};
  }
  const torch::Tensor wanted = action.view({envs_, uavs_, 2});
  const float speed = static_cast<float>(options_.uav.speed);
  // NaN fails the comparison.
  const torch::Tensor a = wanted.clamp_max(1).masked_fill((wanted >= -1).logical_not(), -1);
  const torch::Tensor ax = a.select(2, 0), ay = a.select(2, 1);
  const torch::Tensor squared = ax * ax + ay * ay;
  const torch::Tensor length = squared.sqrt().masked_fill_(squared <= 1, 1);
  return {ax / length * speed, ay / length * speed};
}

torch::Tensor TensorWorld::Visit(const torch::Tensor& cell, const torch::Tensor& row, const torch::Tensor& visits) {
  const torch::Tensor flat = state_.unvisited.view(-1);
  const torch::Tensor fresh = flat.take(cell).to(torch::kBool).logical_and_(visits);
  const torch::Tensor same = (cell.t().contiguous().unsqueeze(2) == cell).logical_and_(fresh.t().unsqueeze(2));
  const torch::Tensor first = torch::logical_and(same, arena_.earlier).any(0).logical_not_().logical_and_(fresh);
  state_.left_to_visit = state_.left_to_visit - first.sum(1);
  // All others mark a corner of the first map, which is wall.
  flat.index_fill_(0, cell.masked_fill(fresh.logical_not(), 0).view(-1), 0);
  if (options_.task == UavTask::kNavigate) return {};
  state_.unvisited_cells.scatter_add_(1, arena_.block.take(cell - row * arena_.grid_size),
                                      first.to(torch::kFloat32).neg_());
  const torch::Tensor sharing = same.sum(0).clamp_min_(1).to(torch::kFloat32);
  const torch::Tensor reward = arena_.Scalar(static_cast<float>(options_.uav.cover_reward)) / sharing;
  return reward.masked_fill_(fresh.logical_not(), 0);
}

TensorEnv::StepResult TensorWorld::Advance(const torch::Tensor& action) {
  const torch::NoGradGuard no_grad;
  squares_ = torch::Tensor();
  const bool navigate = options_.task == UavTask::kNavigate;
  const auto real = [](double value) { return static_cast<float>(value); };
  TensorUavState& state = state_;
  StepResult result;
  const torch::Tensor took = state.status == kAlive;
  const torch::Tensor row = state_.Row().unsqueeze(1);

  const auto [vx, vy] = Velocity(action);
  const TensorArena::Flight flight = {state.x, state.y, vx, vy};
  state.vx = torch::where(took, vx, state.vx);
  state.vy = torch::where(took, vy, state.vy);
  state.x = torch::where(took, state.x + vx, state.x);
  state.y = torch::where(took, state.y + vy, state.y);
  state.flown = torch::where(took, state.flown + (vx * vx + vy * vy).sqrt(), state.flown);

  const TensorArena::Flight each = {flight.x, flight.y, vx.unsqueeze(0), vy.unsqueeze(0)};
  const TensorArena::Contact contact = arena_.Fly(state_.around, each, state.x.unsqueeze(0), state.y.unsqueeze(0), row);
  const torch::Tensor hit = contact.hit.select(0, 0), cell = contact.cell.select(0, 0);
  const torch::Tensor nearest = arena_.NearestSquares(flight, state.x, state.y, took);
  state.separation_squared = torch::minimum(state.separation_squared, nearest.amin(1));
  const float diameter = 2 * arena_.radius;
  const torch::Tensor crashed = (nearest < diameter * diameter).logical_or_(hit).logical_and_(took);
  const torch::Tensor goes_on = torch::logical_and(took, crashed.logical_not());

  torch::Tensor own = Visit(cell, row, goes_on), arrived;
  torch::Tensor status = state.status.masked_fill(crashed, kCrashed);
  if (navigate) {
    const torch::Tensor dx = state.target_x - state.x, dy = state.target_y - state.y;
    const torch::Tensor squared = dx * dx + dy * dy, distance = squared.sqrt();
    own = (state.distance - distance) * real(options_.uav.progress_reward);
    state.distance = torch::where(took, distance, state.distance);
    arrived = (squared < kUavArrivalSquared).logical_and_(goes_on);
    own = torch::where(arrived, own + real(options_.uav.target_reward), own);
    status = status.masked_fill(arrived, kArrived);
  }
  own = torch::where(crashed, own - real(options_.uav.collision_penalty), own) - real(options_.uav.step_penalty);
  own = own.masked_fill(took.logical_not(), 0);
  const float share = real(options_.uav.team_share);
  const torch::Tensor mean = own.sum(1, /*keepdim=*/true) / team_;
  result.reward = own * (1 - share) + mean * share;
  state.status = status;
  state.step = state.step + 1;
  state.episode_return = state.episode_return + result.reward.to(torch::kFloat64).sum(1);

  const torch::Tensor active = status == kAlive;
  result.terminated = active.any(1).logical_not_();
  if (!navigate) result.terminated.logical_or_(state.left_to_visit == 0);
  result.truncated = (state.step >= spec_.max_episode_steps).logical_and_(result.terminated.logical_not());
  result.ended = torch::logical_or(result.terminated, result.truncated);
  result.active = took;
  result.agent_terminated = torch::logical_or(result.terminated.unsqueeze(1), active.logical_not()).logical_and_(took);
  result.episode_return = state.episode_return;
  result.episode_length = state.step;
  result.episode_metrics = Metrics();
  result.notes = {state.episode, status, state.flown};
  ended_ = result.ended;
  return result;
}

torch::Tensor TensorWorld::Metrics() const {
  const auto share = [this](int64_t status) { return (state_.status == status).sum(1).to(torch::kFloat32) / team_; };
  const torch::Tensor visited = (state_.free - state_.left_to_visit).to(torch::kFloat32);
  const torch::Tensor coverage = visited / state_.free.clamp_min(1).to(torch::kFloat32);
  const torch::Tensor& squared = state_.separation_squared;
  const torch::Tensor separation = squared.sqrt().masked_fill_(squared >= kFar, 0);
  if (options_.task == UavTask::kCover) return torch::stack({share(kCrashed), coverage, separation}, 1);
  return torch::stack({share(kArrived), share(kCrashed), coverage, torch::zeros_like(coverage), separation}, 1);
}

}  // namespace skein
