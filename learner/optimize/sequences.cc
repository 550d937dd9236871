// SPDX-License-Identifier: Apache-2.0
#include "learner/optimize/sequences.h"

#include <torch/types.h>
#include <torch/utils.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "learner/optimize/across_ranks.h"

namespace skein {
namespace {

// Whether an episode begins with each of T + 1 steps; what the first step begins with is in the state before it.
torch::Tensor Begins(const torch::Tensor& ended, int64_t columns, torch::Device device) {
  const int64_t steps = ended.size(0), agents = ended.size(1) > 0 ? columns / ended.size(1) : 1;
  const torch::Tensor of_columns = ended.unsqueeze(2).expand({steps, ended.size(1), agents}).reshape({steps, columns});
  return torch::cat({torch::zeros({1, columns}, of_columns.options()), of_columns}).to(device);
}

int64_t Length(int64_t wanted, int64_t steps) { return wanted > 0 ? std::min(wanted, steps) : steps; }

}  // namespace

Sequences::Sequences(const Options& options, const ActorCritic& network, TrainingData* data)
    : network_(network),
      data_(*data),
      T_(data->share.steps),
      M_(data->share.columns),
      L_(Length(options.length, T_)),
      pieces_((T_ + L_ - 1) / L_),
      burn_in_(pieces_ > 1 ? std::min(options.burn_in, (pieces_ - 1) * L_) : 0),
      obs_(data->critic.narrow(1, 0, network.options().obs_size).reshape({T_ + 1, M_, network.options().obs_size})),
      critic_(data->critic.view({T_ + 1, M_, data->critic.size(1)})),
      final_obs_(data->final_critic.narrow(1, 0, network.options().obs_size)),
      final_critic_(data->final_critic),
      first_(data->batch.has("first_policy_state") ? data->batch["first_policy_state"].to(obs_.device())
                                                   : torch::zeros({M_, network.memory().state_size()}, obs_.options())),
      begins_(Begins(data->batch["ended"], M_, obs_.device())) {
  const torch::Device device = obs_.device();
  const torch::Tensor piece = torch::arange(pieces_).view({-1, 1, 1}), column = torch::arange(M_).view({1, -1, 1});
  const torch::Tensor step = piece * L_ + torch::arange(L_).view({1, 1, -1});  // [pieces, 1, L]
  rows_ = (step.clamp_max(T_ - 1) * M_ + column).reshape({-1});
  const int64_t S = pieces_ * M_;
  if (pieces_ * L_ > T_) valid_ = (step < T_).expand({pieces_, M_, L_}).reshape({S, L_});
  if (data->active.defined()) {
    const torch::Tensor active = data->active.cpu().index_select(0, rows_).view({S, L_});
    valid_ = valid_.defined() ? valid_.logical_and(active) : active;
  }
  rows_ = rows_.to(device);
  if (valid_.defined()) samples_["valid"] = valid_.to(device);
  for (const auto& [name, rows] : data->samples.tensors()) {
    if (name != "critic_input" && rows.defined()) samples_[name] = Cut(rows);  // critic_input: below, if at all.
  }
  samples_["begins"] = Cut(begins_.view({-1}));
  const bool central = critic_.size(2) > obs_.size(2);
  if (network.critic_memory().exists()) {
    samples_["critic_input"] = Cut(data->critic);
  } else if (central) {
    samples_["global_state"] = Cut(data->critic).narrow(2, obs_.size(2), critic_.size(2) - obs_.size(2)).contiguous();
  }
  if (burn_in_ == 0) return;
  const torch::Tensor before = piece * L_ - burn_in_ + torch::arange(burn_in_).view({1, 1, -1});
  const torch::Tensor rows = (before.clamp_min(0) * M_ + column).reshape({-1}).to(device);
  const auto burn = [&](const torch::Tensor& all) {
    std::vector<int64_t> shape = all.sizes().vec();
    shape[0] = burn_in_;
    shape.insert(shape.begin(), S);
    return all.index_select(0, rows).view(shape);
  };
  const torch::Tensor skips = (before < 0).expand({pieces_, M_, burn_in_}).reshape({S, burn_in_}).to(device);
  samples_["burn_skips"] = skips;
  samples_["burn_begins"] = burn(begins_.view({-1})).logical_and(skips.logical_not());
  samples_["burn_obs"] = burn(data->samples["obs"]);
  if (network.critic_memory().exists()) samples_["burn_critic_input"] = burn(data->critic);
}

torch::Tensor Sequences::Cut(const torch::Tensor& rows) const {
  std::vector<int64_t> shape = rows.sizes().vec();
  shape[0] = L_;
  shape.insert(shape.begin(), pieces_ * M_);
  return rows.index_select(0, rows_).view(shape);
}

torch::Tensor Sequences::StatesAtBegins(const MemoryRun& run, const torch::Tensor& first) const {
  std::vector<torch::Tensor> states = {first};
  for (int64_t piece = 1; piece < pieces_; ++piece) {
    const int64_t step = std::max<int64_t>(0, piece * L_ - burn_in_);
    states.push_back(step == 0 ? first : run.StatesAfter(step - 1).masked_fill(begins_[step].unsqueeze(1), 0));
  }
  return torch::cat(states);
}

void Sequences::Unroll(bool states, BatchForward* forward) {
  const torch::NoGradGuard no_grad;
  const int64_t rows = (T_ + 1) * M_, ends = final_obs_.size(0), H = network_.memory().size();
  const torch::Tensor at =
      ends > 0 ? data_.batch["final_index"].to(obs_.device()) : torch::empty({0}, torch::kInt64).to(obs_.device());
  // What the memory gives for the last observations of episodes that were cut off: [K, H].
  const auto last = [&](const MemoryCell& cell, const MemoryRun& run, const torch::Tensor& input) {
    if (ends == 0) return torch::empty({0, H}, obs_.options());
    const torch::Tensor from = run.StatesOf(at), fresh = torch::zeros({1, ends}, begins_.options());
    return forward->Remember(cell, input.unsqueeze(0), fresh, from).output[0];
  };
  const MemoryRun run = forward->Remember(network_.memory(), obs_, begins_, first_);
  const torch::Tensor h = run.output.view({rows, H});
  data_.policy = h.narrow(0, 0, T_ * M_);
  if (states) samples_["memory_state"] = StatesAtBegins(run, first_);
  if (network_.critic_memory().exists()) {
    const MemoryRun critic = forward->Remember(network_.critic_memory(), critic_, begins_, first_);
    data_.critic = critic.output.view({rows, H});
    data_.final_critic = last(network_.critic_memory(), critic, final_critic_);
    if (states) samples_["critic_memory_state"] = StatesAtBegins(critic, first_);
    return;
  }
  const int64_t O = obs_.size(2), G = critic_.size(2) - O;
  const auto beside = [&](const torch::Tensor& memory, const torch::Tensor& input) {
    return G == 0 ? memory : torch::cat({memory, input.narrow(1, O, G)}, 1);
  };
  data_.critic = beside(h, critic_.view({rows, O + G}));
  data_.final_critic = beside(last(network_.memory(), run, final_obs_), final_critic_);
}

absl::StatusOr<MinibatchOrder> Sequences::Shuffle(int64_t minibatch_size, uint64_t seed, uint64_t iteration,
                                                  uint32_t epoch, Collective* collective) const {
  const RowShare share{pieces_, M_, data_.share.offset, data_.share.total};
  MinibatchOrder order = ShuffleMinibatches(share, std::max<int64_t>(1, minibatch_size / L_), seed, iteration, epoch);
  if (!valid_.defined()) {
    for (int64_t& size : order.size) size *= L_;
    return order;
  }
  const torch::Tensor counts = valid_.sum(1).index_select(0, order.rows);
  const int64_t* const count = counts.data_ptr<int64_t>();
  std::vector<double> samples(order.minibatches());
  for (size_t i = 0; i < samples.size(); ++i) {
    for (int64_t k = order.begin[i]; k < order.begin[i + 1]; ++k) samples[i] += static_cast<double>(count[k]);
  }
  if (absl::Status s = SumOverRanks(collective, &samples); !s.ok()) return s;
  for (size_t i = 0; i < samples.size(); ++i) order.size[i] = std::llround(samples[i]);
  return order;
}

MinibatchOrder Sequences::RowsOf(const MinibatchOrder& sequences) const {
  MinibatchOrder order;
  order.size = sequences.size;
  const torch::Tensor rows = rows_.cpu().view({pieces_ * M_, L_});
  std::vector<torch::Tensor> parts;
  order.begin.push_back(0);
  for (size_t i = 0; i < sequences.minibatches(); ++i) {
    const torch::Tensor index =
        sequences.rows.narrow(0, sequences.begin[i], sequences.begin[i + 1] - sequences.begin[i]);
    torch::Tensor part = rows.index_select(0, index).view({-1});
    if (valid_.defined()) part = part.masked_select(valid_.index_select(0, index).view({-1}));
    order.begin.push_back(order.begin.back() + part.numel());
    parts.push_back(part);
  }
  order.rows = torch::cat(parts);
  return order;
}

}  // namespace skein
