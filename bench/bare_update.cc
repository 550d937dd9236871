// SPDX-License-Identifier: Apache-2.0
#include "bench/bare_update.h"

#include <torch/nn/module.h>
#include <torch/nn/modules/activation.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/linear.h>
#include <torch/nn/modules/rnn.h>
#include <torch/nn/utils/clip_grad.h>
#include <torch/optim/adam.h>
#include <torch/types.h>
#include <torch/utils.h>
#include <torch/version.h>

#include <algorithm>
#include <cmath>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "learner/network/actor_critic.h"

namespace skein {
namespace {

template <typename Value>
torch::Tensor View(absl::Span<const Value> values, std::vector<int64_t> shape, torch::ScalarType dtype) {
  return torch::from_blob(const_cast<Value*>(values.data()), shape, torch::TensorOptions().dtype(dtype));
}

bool IsCentral(const ActorCriticOptions& options) { return !options.shared_trunk && options.critic_input_size > 0; }

// A GRU's or an LSTM's cell, for a loop over steps.
struct MemoryImpl : torch::nn::Module {
  MemoryImpl(const ActorCriticOptions& options, int64_t inputs) {
    if (options.memory == MemoryKind::kGru) {
      gru = register_module("gru", torch::nn::GRUCell(inputs, options.memory_size));
    } else {
      lstm = register_module("lstm", torch::nn::LSTMCell(inputs, options.memory_size));
    }
  }

  // One step; c is an LSTM's.
  void Step(const torch::Tensor& input, torch::Tensor* h, torch::Tensor* c) {
    if (!gru.is_empty()) {
      *h = gru->forward(input, *h);
    } else {
      std::tie(*h, *c) = lstm->forward(input, std::make_tuple(*h, *c));
    }
  }

  torch::nn::GRUCell gru{nullptr};
  torch::nn::LSTMCell lstm{nullptr};
};
TORCH_MODULE(Memory);

// Policy and value function; with a shared trunk both heads are single layers on top of it.
struct NetworkImpl : torch::nn::Module {
  explicit NetworkImpl(const ActorCriticOptions& options) {
    int64_t inputs = options.feature_size();
    const bool remembers = options.memory != MemoryKind::kNone;
    if (remembers) memory = register_module("memory", Memory(options, options.obs_size));
    if (options.critic_memory) {
      critic_memory = register_module(
          "critic_memory", Memory(options, IsCentral(options) ? options.critic_input_size : options.obs_size));
    }
    if (options.shared_trunk) {
      trunk = register_module("trunk", Stack(options, inputs, 0));
      if (!options.hidden.empty()) inputs = options.hidden.back();
    }
    ActorCriticOptions own = options;
    if (options.shared_trunk) own.hidden.clear();
    policy = register_module("policy", Stack(own, inputs, options.action_size));
    const int64_t state_size =
        IsCentral(options) && !options.critic_memory ? options.critic_input_size - options.obs_size : 0;
    value = register_module("value", Stack(own, inputs + state_size, 1));
    if (!options.discrete) {
      log_std = register_parameter("log_std", torch::full({options.action_size}, options.init_log_std));
    }
  }

  static torch::nn::Sequential Stack(const ActorCriticOptions& options, int64_t inputs, int64_t outputs) {
    torch::nn::Sequential layers;
    for (int64_t width : options.hidden) {
      layers->push_back(torch::nn::Linear(inputs, width));
      switch (options.activation) {
        case ActivationKind::kTanh:
          layers->push_back(torch::nn::Tanh());
          break;
        case ActivationKind::kElu:
          layers->push_back(torch::nn::ELU());
          break;
        case ActivationKind::kRelu:
          layers->push_back(torch::nn::ReLU());
          break;
      }
      inputs = width;
    }
    if (outputs > 0) layers->push_back(torch::nn::Linear(inputs, outputs));
    return layers;
  }

  torch::Tensor Features(const torch::Tensor& obs) { return trunk.is_empty() ? obs : trunk->forward(obs); }
  torch::Tensor Value(const torch::Tensor& input) { return value->forward(Features(input)).squeeze(1); }

  torch::nn::Sequential trunk{nullptr}, policy{nullptr}, value{nullptr};
  Memory memory{nullptr}, critic_memory{nullptr};
  torch::Tensor log_std;
};
TORCH_MODULE(Network);

}  // namespace

struct BareUpdate::Impl {
  Impl(const v1::RunConfig& run_config, const EnvSpec& spec)
      : config(run_config.ppo()),
        options(MakeActorCriticOptions(run_config.model(), spec)),
        network(options),
        optimizer(network->parameters(), torch::optim::AdamOptions(config.lr()).eps(config.adam_epsilon())) {}

  // Sets advantage and target, [T, M].
  // Of what the value function reads.
  void Targets(const Columns& batch, const torch::Tensor& input, const torch::Tensor& final_input) {
    const torch::NoGradGuard no_grad;
    const int64_t T = batch.steps(), M = batch.columns();
    const torch::Tensor values = network->Value(input.view({-1, input.size(2)})).view({T + 1, M});
    torch::Tensor next = values.narrow(0, 1, T).clone();
    if (final_input.size(0) > 0) {
      const int64_t count = final_input.size(0);
      next.view({-1}).index_copy_(0, View(batch.values<int64_t>("final_index"), {count}, torch::kInt64),
                                  network->Value(final_input));
    }
    const torch::Tensor reward = View(batch.values<float>("reward"), {T, M}, torch::kFloat32);
    const torch::Tensor terminated =
        View(batch.values<uint8_t>("terminated"), {T, M}, torch::kUInt8).to(torch::kFloat32);
    const torch::Tensor done =
        terminated + View(batch.values<uint8_t>("truncated"), {T, M}, torch::kUInt8).to(torch::kFloat32);
    old_value = values.narrow(0, 0, T);
    const torch::Tensor delta = reward + config.gamma() * (1 - terminated) * next - old_value;
    const torch::Tensor carry = config.gamma() * config.gae_lambda() * (1 - done);
    advantage = torch::empty({T, M});
    torch::Tensor sum = torch::zeros({M});
    for (int64_t t = T - 1; t >= 0; --t) {
      sum = delta[t] + carry[t] * sum;
      advantage[t] = sum;
    }
    target = advantage + old_value;
  }

  torch::Tensor Loss(const torch::Tensor& obs, const torch::Tensor& value_input, const torch::Tensor& action,
                     const torch::Tensor& old_log_prob, torch::Tensor advantages, const torch::Tensor& targets,
                     const torch::Tensor& old_values) {
    const torch::Tensor features = network->Features(obs);
    const torch::Tensor head = network->policy->forward(features);
    const bool apart = IsCentral(options) || options.critic_memory;
    const torch::Tensor value = network->value->forward(apart ? value_input : features).squeeze(1);
    torch::Tensor log_prob, entropy;
    if (options.discrete) {
      const torch::Tensor all = torch::log_softmax(head, 1);
      log_prob = all.gather(1, action.unsqueeze(1)).squeeze(1);
      entropy = -(all.exp() * all).sum(1).mean();
    } else {
      const torch::Tensor z = (action - head) / network->log_std.exp();
      const double constant = 0.5 * std::log(2 * M_PI) * static_cast<double>(options.action_size);
      log_prob = -0.5 * z.square().sum(1) - network->log_std.sum() - constant;
      entropy = (network->log_std + 0.5 * (1 + std::log(2 * M_PI))).sum();
    }
    if (config.normalize_advantages()) advantages = (advantages - advantages.mean()) / (advantages.std() + 1e-8);
    const torch::Tensor ratio = (log_prob - old_log_prob).exp();
    const torch::Tensor clipped = ratio.clamp(1 - config.clip(), 1 + config.clip());
    const torch::Tensor policy_loss = -torch::min(ratio * advantages, clipped * advantages).mean();
    torch::Tensor error = (value - targets).square();
    if (config.value_clip() > 0) {
      const torch::Tensor near = old_values + (value - old_values).clamp(-config.value_clip(), config.value_clip());
      error = torch::max(error, (near - targets).square());
    }
    return policy_loss + config.value_coefficient() * error.mean() - config.entropy_coefficient() * entropy;
  }

  // What `memory` gives in each step, [L, S, H], of input [L, S, I]; fresh [L, S]: 1 where an episode begins. `cells`:
  // c after each step, if not null.
  static torch::Tensor Remember(Memory& memory, const torch::Tensor& input, const torch::Tensor& fresh, torch::Tensor h,
                                torch::Tensor c, std::vector<torch::Tensor>* cells) {
    std::vector<torch::Tensor> outputs;
    for (int64_t t = 0; t < input.size(0); ++t) {
      const torch::Tensor keep = (1 - fresh[t]).unsqueeze(1);
      h = h * keep;
      if (c.defined()) c = c * keep;
      memory->Step(input[t], &h, &c);
      outputs.push_back(h);
      if (cells != nullptr) cells->push_back(c);
    }
    return torch::stack(outputs);
  }

  // What a memory gives over an iteration: h [T + 1, M, H], `last` [F, H] of the final observations; and its state
  // where each sequence begins, [S, H].
  struct Past {
    torch::Tensor h, last, first_h, first_c;
  };

  // input [T + 1, M, I], final_input [F, I]; L steps in a sequence.
  Past Replay(Memory& memory, const torch::Tensor& input, const torch::Tensor& final_input,
              const torch::Tensor& final_index, const torch::Tensor& fresh, int64_t L) {
    const torch::NoGradGuard no_grad;
    const int64_t H = options.memory_size;
    const bool is_lstm = options.memory == MemoryKind::kLstm;
    const torch::Tensor zeros = torch::zeros({input.size(1), H});
    std::vector<torch::Tensor> cells;
    Past past;
    past.h = Remember(memory, input, fresh, zeros, is_lstm ? zeros : torch::Tensor(), &cells);
    past.last = past.h.view({-1, H}).index_select(0, final_index);
    torch::Tensor last_c;
    if (is_lstm) last_c = torch::stack(cells).view({-1, H}).index_select(0, final_index);
    if (final_index.numel() > 0) memory->Step(final_input, &past.last, &last_c);
    std::vector<torch::Tensor> hs = {zeros}, cs = {zeros};
    for (int64_t t = L; t < input.size(0) - 1; t += L) {
      hs.push_back(past.h[t - 1]);
      if (is_lstm) cs.push_back(cells[t - 1]);
    }
    past.first_h = torch::cat(hs);
    if (is_lstm) past.first_c = torch::cat(cs);
    return past;
  }

  // `input`: what a critic reads, [T + 1, M, I]; `obs` unless it is central.
  void UpdateSequences(const Columns& batch, const torch::Tensor& obs, const torch::Tensor& final_obs,
                       const torch::Tensor& input, const torch::Tensor& final_input) {
    const int64_t T = batch.steps(), M = batch.columns(), O = options.obs_size, A = M / batch.share_envs();
    const int64_t L = config.sequence_length() > 0 ? config.sequence_length() : T, S = T / L * M;
    const torch::Tensor ended = View(batch.values<uint8_t>("ended"), {T, M / A, 1}, torch::kUInt8).to(torch::kFloat32);
    const torch::Tensor fresh = torch::cat({torch::zeros({1, M}), ended.expand({T, M / A, A}).reshape({T, M})});
    const torch::Tensor final_index = View(batch.values<int64_t>("final_index"), {final_obs.size(0)}, torch::kInt64);
    // [T, M, ...] -> [L, S, ...], the sequences of a column one after the other.
    const auto cut = [&](const torch::Tensor& all) {
      std::vector<int64_t> shape = all.sizes().vec();
      shape.erase(shape.begin(), shape.begin() + 2);
      std::vector<int64_t> pieces = {T / L, L, M}, joined = {L, S};
      pieces.insert(pieces.end(), shape.begin(), shape.end());
      joined.insert(joined.end(), shape.begin(), shape.end());
      return all.reshape(pieces).transpose(0, 1).reshape(joined);
    };
    const torch::Tensor rows = cut(obs.narrow(0, 0, T)), value_rows = cut(input.narrow(0, 0, T));
    const torch::Tensor begins = cut(fresh.narrow(0, 0, T));
    const torch::Tensor action =
        cut(options.discrete ? View(batch.values<int64_t>("action"), {T, M}, torch::kInt64)
                             : View(batch.values<float>("action"), {T, M, options.action_size}, torch::kFloat32));
    const torch::Tensor log_prob = cut(View(batch.values<float>("log_prob"), {T, M}, torch::kFloat32));
    // Without a memory of its own, a central critic reads the state beside what the policy's memory gives.
    const auto with_state = [&](const torch::Tensor& h, const torch::Tensor& critics) {
      if (!IsCentral(options)) return h;
      const int64_t last = critics.dim() - 1;
      return torch::cat({h, critics.narrow(last, O, critics.size(last) - O)}, last);
    };
    const int64_t at_once = std::max<int64_t>(1, config.minibatch_size() / L),
                  minibatches = std::max<int64_t>(1, S / at_once);
    for (uint32_t epoch = 0; epoch < config.epochs(); ++epoch) {
      const Past past = Replay(network->memory, obs, final_obs, final_index, fresh, L);
      Past critics;
      if (options.critic_memory) {
        critics = Replay(network->critic_memory, input, final_input, final_index, fresh, L);
      }
      if (epoch == 0 || config.recompute_advantages()) {
        Targets(batch, options.critic_memory ? critics.h : with_state(past.h, input),
                options.critic_memory ? critics.last : with_state(past.last, final_input));
      }
      const torch::Tensor advantages = cut(advantage), targets = cut(target), old_values = cut(old_value);
      const torch::Tensor order = torch::randperm(S, torch::kInt64);
      for (int64_t i = 0; i < minibatches; ++i) {
        const int64_t count = i + 1 < minibatches ? at_once : S - i * at_once;
        const torch::Tensor index = order.narrow(0, i * at_once, count);
        const auto pick = [&](const torch::Tensor& of) { return of.index_select(1, index); };
        const auto recall = [&](Memory& memory, const torch::Tensor& from, const Past& begin) {
          return Remember(memory, pick(from), pick(begins), begin.first_h.index_select(0, index),
                          begin.first_c.defined() ? begin.first_c.index_select(0, index) : torch::Tensor(), nullptr);
        };
        const torch::Tensor h = recall(network->memory, rows, past);
        const torch::Tensor value_h = options.critic_memory ? recall(network->critic_memory, value_rows, critics)
                                                            : with_state(h, pick(value_rows));
        Step(Loss(h.flatten(0, 1), value_h.flatten(0, 1), pick(action).flatten(0, 1), pick(log_prob).flatten(),
                  pick(advantages).flatten(), pick(targets).flatten(), pick(old_values).flatten()));
      }
    }
  }

  void Step(const torch::Tensor& loss) {
    optimizer.zero_grad();
    loss.backward();
    if (config.max_grad_norm() > 0) torch::nn::utils::clip_grad_norm_(network->parameters(), config.max_grad_norm());
    optimizer.step();
  }

  void Update(const Columns& batch) {
    const int64_t T = batch.steps(), M = batch.columns(), O = options.obs_size, size = T * M;
    const torch::Tensor raw = View(batch.values<float>("obs"), {T + 1, M, O}, torch::kFloat32);
    const std::vector<int64_t> both = {0, 1};
    const torch::Tensor mean = raw.mean(both), deviation = raw.std(both, /*unbiased=*/false) + 1e-4;
    const torch::Tensor obs = ((raw - mean) / deviation).clamp(-10, 10);
    const int64_t truncations = static_cast<int64_t>(batch.values<int64_t>("final_index").size());
    const torch::Tensor final_obs =
        ((View(batch.values<float>("final_obs"), {truncations, O}, torch::kFloat32) - mean) / deviation).clamp(-10, 10);
    const torch::Tensor rows = obs.narrow(0, 0, T).reshape({size, O});
    torch::Tensor input = obs, final_input = final_obs;
    if (const int64_t G = options.critic_input_size - O; !options.shared_trunk && G > 0) {
      // Each environment's state beside each of its agents' observations.
      const int64_t N = batch.share_envs(), A = M / N;
      const torch::Tensor raw_state = View(batch.values<float>("state"), {T + 1, N, G}, torch::kFloat32);
      const torch::Tensor state_mean = raw_state.mean(both), state_deviation = raw_state.std(both, false) + 1e-4;
      const auto beside = [&](const torch::Tensor& of_agents, const torch::Tensor& states) {
        const torch::Tensor scaled = ((states - state_mean) / state_deviation).clamp(-10, 10);
        const torch::Tensor each = scaled.view({-1, 1, G}).expand({-1, A, G}).reshape({-1, G});
        return torch::cat({of_agents.reshape({-1, O}), each}, 1);
      };
      input = beside(obs, raw_state).view({T + 1, M, O + G});
      final_input = beside(final_obs, View(batch.values<float>("final_state"), {truncations / A, G}, torch::kFloat32));
    }
    if (options.memory != MemoryKind::kNone) return UpdateSequences(batch, obs, final_obs, input, final_input);
    const torch::Tensor value_rows = input.narrow(0, 0, T).reshape({size, input.size(2)});
    const torch::Tensor action =
        options.discrete ? View(batch.values<int64_t>("action"), {size}, torch::kInt64)
                         : View(batch.values<float>("action"), {size, options.action_size}, torch::kFloat32);
    const torch::Tensor log_prob = View(batch.values<float>("log_prob"), {size}, torch::kFloat32);
    const int64_t minibatches = std::max<int64_t>(1, size / config.minibatch_size());
    for (uint32_t epoch = 0; epoch < config.epochs(); ++epoch) {
      if (epoch == 0 || config.recompute_advantages()) Targets(batch, input, final_input);
      const torch::Tensor order = torch::randperm(size, torch::kInt64);
      for (int64_t i = 0; i < minibatches; ++i) {
        const int64_t first = i * config.minibatch_size();
        const int64_t count = i + 1 < minibatches ? config.minibatch_size() : size - first;
        const torch::Tensor index = order.narrow(0, first, count);
        const auto pick = [&](const torch::Tensor& of) { return of.index_select(0, index); };
        const torch::Tensor loss =
            Loss(pick(rows), pick(value_rows), pick(action), pick(log_prob), pick(advantage.view({size})),
                 pick(target.view({size})), pick(old_value.reshape({size})));
        Step(loss);
      }
    }
  }

  const v1::PpoConfig config;
  const ActorCriticOptions options;
  Network network;
  torch::optim::Adam optimizer;
  torch::Tensor advantage, target, old_value;  // [T, M]
};

BareUpdate::BareUpdate(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
BareUpdate::~BareUpdate() = default;

absl::StatusOr<std::unique_ptr<BareUpdate>> BareUpdate::Make(const v1::RunConfig& config, const EnvSpec& spec) {
  if (!config.has_ppo()) return absl::InvalidArgumentError("the bare update is one of PPO: give a ppo configuration");
  const ActorCriticOptions options = MakeActorCriticOptions(config.model(), spec);
  if (options.memory != MemoryKind::kNone) {
    const uint32_t steps = config.rollout().steps_per_iteration() / config.rollout().num_envs();
    const uint32_t length = config.ppo().sequence_length();
    if (config.ppo().burn_in() > 0 || (length > 0 && steps % length != 0)) {
      return absl::InvalidArgumentError(
          "the bare update with a memory wants ppo.burn_in=0 and a ppo.sequence_length that divides "
          "steps_per_iteration / num_envs");
    }
  }
  try {
    at::set_num_threads(static_cast<int>(config.learner().torch_threads()));
    torch::manual_seed(config.seed());
    return std::unique_ptr<BareUpdate>(new BareUpdate(std::make_unique<Impl>(config, spec)));
  } catch (const std::exception& error) {
    return absl::InternalError(absl::StrCat("Torch failed while building the bare networks: ", error.what()));
  }
}

absl::Status BareUpdate::Update(const Columns& batch) {
  try {
    impl_->Update(batch);
    return absl::OkStatus();
  } catch (const std::exception& error) {
    return absl::InternalError(absl::StrCat("Torch failed in the bare update: ", error.what()));
  }
}

}  // namespace skein
