// SPDX-License-Identifier: Apache-2.0
#include "learner/algorithm/ppo/fused_gradient.h"

#include <absl/strings/match.h>
#include <torch/types.h>

#include <algorithm>

#include "learner/algorithm/ppo/policy_terms.h"
#include "policy/dense_kernels.h"

namespace skein {
namespace {

// Rows that go through the networks together: few enough to stay in the cache, and a multiple of every tile's height.
constexpr int64_t kRows = 96;
// Of a hidden layer: from about here on a library's products are faster, being cut to the cache's size.
constexpr int64_t kMaxWidth = 512;
constexpr int64_t kTiles = 24;  // The least multiple of the heights.
constexpr float kOne = 1;
// That go through a memory together.
constexpr int64_t kSequences = 24;
// Of a thread that runs a memory without gradients, at least.
constexpr int64_t kColumns = 4;

int64_t RoundUp(int64_t size, int64_t step) { return (size + step - 1) / step * step; }

}  // namespace

bool FusedGradient::Supports(const ActorCritic& network) {
  const std::vector<int64_t>& hidden = network.options().hidden;
  return network.options().memory_size <= kMaxWidth && network.AllParameters().front().second.is_cpu() &&
         std::all_of(hidden.begin(), hidden.end(), [](int64_t width) { return width <= kMaxWidth; });
}

FusedGradient::FusedGradient(const ActorCritic& network, int threads)
    : FusedGradient(network, threads, Gradients::kOfNetwork) {}

FusedGradient::FusedGradient(const ActorCritic& network, int threads, Gradients gradients)
    : network_(network),
      activation_(network.options().activation),
      threads_(threads),
      obs_(network.options().feature_size(), network.memory().exists()) {
  const bool remembers = network.memory().exists();
  const bool apart = remembers ? network.critic_memory().exists() || network.value_input_size() > obs_.width
                               : network.options().critic_input_size > 0 && !network.options().shared_trunk;
  if (apart) critic_input_.emplace(network.value_input_size(), remembers);
  const auto parameters = network.AllParameters();
  for (const auto& [name, parameter] : parameters) {
    gradients_.push_back(gradients == Gradients::kOwn ? torch::zeros_like(parameter.detach()) : parameter.grad());
  }
  const auto make_memory = [&](const MemoryCell& cell, size_t first) {
    std::vector<float*> of_cell;
    for (size_t i = first; i < first + 4; ++i) of_cell.push_back(gradients_[i].data_ptr<float>());
    return std::make_unique<FusedMemory>(cell, of_cell);
  };
  for (size_t i = 0; i < parameters.size(); ++i) {
    const auto& [name, parameter] = parameters[i];
    if (name == "memory.weight_ih") memory_ = make_memory(network.memory(), i);
    if (name == "critic_memory.weight_ih") critic_memory_ = make_memory(network.critic_memory(), i);
    if (name == "log_std") {
      log_std_ = parameter.detach();
      grad_log_std_ = gradients_[i];
    } else if (absl::EndsWith(name, ".weight")) {  // Its bias follows.
      const torch::Tensor& bias = parameters[i + 1].second;
      const int64_t outputs = parameter.size(0), inputs = parameter.size(1);
      Layer layer{PackedLayer(parameter.data_ptr<float>(), bias.data_ptr<float>(), inputs, outputs),
                  gradients_[i].data_ptr<float>(), gradients_[i + 1].data_ptr<float>()};
      if (inputs != Padded(inputs)) {
        layer.padded_weight.resize(outputs * Padded(inputs));
        layer.padded_grad_weight.resize(outputs * Padded(inputs));
      }
      layer.padded_grad_bias.resize(Padded(outputs));
      layer.output.resize(kRows * Padded(outputs));
      layer.delta.resize(kRows * Padded(outputs));
      auto& stack = absl::StartsWith(name, "trunk.") ? trunk_ : absl::StartsWith(name, "policy.") ? policy_ : value_;
      stack.push_back(std::move(layer));
    }
  }
}

void FusedGradient::Pack() {
  for (FusedMemory* const memory : {memory_.get(), critic_memory_.get()}) {
    if (memory != nullptr) memory->Pack();
  }
  for (Stack* stack : {&trunk_, &policy_, &value_}) {
    for (Layer& layer : *stack) {
      layer.packed.Pack();
      if (layer.padded_weight.empty()) continue;
      const int64_t inputs = layer.packed.inputs();
      for (int64_t i = 0; i < layer.packed.outputs(); ++i) {
        const float* const row = layer.packed.weight() + i * inputs;
        std::copy(row, row + inputs, layer.padded_weight.data() + i * Padded(inputs));
      }
    }
  }
}

void FusedGradient::AddPaddedGradients() {
  for (Stack* stack : {&trunk_, &policy_, &value_}) {
    for (Layer& layer : *stack) {
      const int64_t outputs = layer.packed.outputs(), inputs = layer.packed.inputs();
      AddTo(outputs, layer.padded_grad_bias.data(), layer.grad_bias);
      if (layer.padded_grad_weight.empty()) continue;
      for (int64_t i = 0; i < outputs; ++i) {
        AddTo(inputs, layer.padded_grad_weight.data() + i * Padded(inputs), layer.grad_weight + i * inputs);
      }
    }
  }
}

void FusedGradient::ClearPaddedGradients() {
  for (Stack* stack : {&trunk_, &policy_, &value_}) {
    for (Layer& layer : *stack) {
      std::fill(layer.padded_grad_bias.begin(), layer.padded_grad_bias.end(), 0.0f);
      std::fill(layer.padded_grad_weight.begin(), layer.padded_grad_weight.end(), 0.0f);
    }
  }
}

FusedGradient::Rows::Rows(int64_t width, bool differentiates)
    : width(width), stride(Padded(width)), buffer(kRows * stride), delta(differentiates ? kRows * stride : 0) {}

void FusedGradient::Rows::Copy(const float* from, const int64_t* index, int64_t first, int64_t rows) {
  for (int64_t i = 0; i < rows; ++i) {
    const float* const row = from + (index == nullptr ? first + i : index[i]) * width;
    std::copy(row, row + width, buffer.data() + i * stride);
  }
}

void FusedGradient::Forward(Stack& stack, size_t activated, Input input, int64_t rows) const {
  for (size_t i = 0; i < stack.size(); ++i) {
    Layer& layer = stack[i];
    const int64_t stride = Padded(layer.packed.outputs());
    layer.packed.Forward(input.data, input.stride, rows, layer.output.data());
    if (i < activated) Activate(activation_, layer.output.data(), rows * stride);
    input = {layer.output.data(), stride};
  }
}

void FusedGradient::Backward(Stack& stack, Input input, int64_t rows) const {
  for (size_t i = stack.size(); i-- > 0;) {
    Layer& layer = stack[i];
    Layer* const below = i > 0 ? &stack[i - 1] : nullptr;
    const Input in = below == nullptr
                         ? input
                         : Input{below->output.data(), Padded(below->packed.outputs()), below->delta.data(), false};
    const int64_t outputs = layer.packed.outputs(), out_stride = Padded(outputs);
    const float* const delta = layer.delta.data();
    // Gradients: delta^T [outputs, rows] times the input [rows, inputs], and times ones.
    float* const grad = layer.padded_grad_weight.empty() ? layer.grad_weight : layer.padded_grad_weight.data();
    Multiply({outputs, rows, in.stride, delta, 1, out_stride, in.data, in.stride, grad, in.stride, grad, in.stride});
    float* const grad_bias = layer.padded_grad_bias.data();
    Multiply({1, rows, out_stride, &kOne, 0, 0, delta, out_stride, grad_bias, 0, grad_bias, 0});
    if (in.delta == nullptr) continue;
    const float* const weight = layer.padded_weight.empty() ? layer.packed.weight() : layer.padded_weight.data();
    Multiply({rows, outputs, in.stride, delta, out_stride, 1, weight, in.stride, in.accumulates ? in.delta : nullptr,
              in.stride, in.delta, in.stride});
    if (below != nullptr) ActivateBackward(activation_, in.data, in.delta, rows * in.stride);
  }
}

FusedGradient::Input FusedGradient::Features(Rows& rows) {
  if (trunk_.empty()) return rows.input();
  Layer& last = trunk_.back();
  return {last.output.data(), Padded(last.packed.outputs()), last.delta.data(), false};
}

int FusedGradient::ForParts(int64_t size, int64_t least, int64_t tile,
                            const std::function<void(FusedGradient&, int, int64_t, int64_t)>& part) {
  const int64_t most = std::clamp<int64_t>(size / least, 1, threads_);
  const int64_t rows = std::max(RoundUp(size, most * tile) / most, tile);  // Of each part but the last.
  const int parts = static_cast<int>(std::max<int64_t>(RoundUp(size, rows) / rows, 1));
  for (int i = 1 + static_cast<int>(others_.size()); i < parts; ++i) {
    others_.push_back(std::unique_ptr<FusedGradient>(new FusedGradient(network_, 1, Gradients::kOwn)));
  }
  const auto run = [&](int p) { part(p == 0 ? *this : *others_[p - 1], p, p * rows, std::min(rows, size - p * rows)); };
  if (parts == 1) {
    run(0);
  } else {
    if (team_ == nullptr || team_->size() < parts) team_ = std::make_unique<ThreadTeam>(parts - 1);
    team_->Run(parts, run);
  }
  return parts;
}

PpoLossValues FusedGradient::Compute(const Minibatch& samples, const int64_t* index, int64_t size,
                                     const v1::PpoConfig& config, int64_t minibatch_size) {
  const double weight = 1.0 / static_cast<double>(minibatch_size > 0 ? minibatch_size : size);
  std::vector<PpoLossValues> losses(threads_);
  const int64_t least = memory_ == nullptr ? kRows : 1, tile = memory_ == nullptr ? kTiles : 1;
  const int parts = ForParts(size, least, tile, [&](FusedGradient& worker, int p, int64_t first, int64_t rows) {
    worker.ClearPaddedGradients();
    if (p > 0) {
      for (const torch::Tensor& own : worker.gradients_) std::fill_n(own.data_ptr<float>(), own.numel(), 0.0f);
    }
    worker.Pack();
    PpoLossValues& loss = losses[p];
    if (worker.memory_ == nullptr) {
      worker.ComputeRows(samples, index + first, rows, config, weight, nullptr, loss);
    } else {
      worker.ComputeSequences(samples, index + first, rows, config, weight, loss);
    }
    worker.AddPaddedGradients();
    for (double* term : {&loss.policy, &loss.value, &loss.entropy, &loss.kl, &loss.clip_fraction}) *term *= weight;
    loss.total = loss.policy + config.value_coefficient() * loss.value - config.entropy_coefficient() * loss.entropy;
  });
  for (int p = 1; p < parts; ++p) {
    AddGradient(*others_[p - 1]);
    losses[0] += losses[p];
  }
  return losses[0];
}

void FusedGradient::AddGradient(const FusedGradient& other) {
  for (size_t i = 0; i < gradients_.size(); ++i) {
    float* const sum = gradients_[i].data_ptr<float>();
    const float* const more = other.gradients_[i].data_ptr<float>();
    const int64_t size = gradients_[i].numel();
    AddTo(size, more, sum);
  }
}

void FusedGradient::ComputeSequences(const Minibatch& samples, const int64_t* index, int64_t size,
                                     const v1::PpoConfig& config, double weight, PpoLossValues& loss) {
  const int64_t steps = samples["obs"].size(1);
  const auto floats = [&](const char* name) -> const float* {
    return samples.has(name) ? samples[name].data_ptr<float>() : nullptr;
  };
  const bool* const begins = samples["begins"].data_ptr<bool>();
  const bool* const valid = samples.has("valid") ? samples["valid"].data_ptr<bool>() : nullptr;
  Given given{memory_.get(), critic_memory_ ? critic_memory_.get() : memory_.get(), floats("global_state"), {}};
  std::vector<int64_t> sample;
  for (int64_t first = 0; first < size; first += kSequences) {
    const int64_t count = std::min(kSequences, size - first);
    const int64_t* const of = index + first;
    memory_->Forward(floats("obs"), begins, floats("memory_state"), of, count, steps);
    if (critic_memory_) {
      critic_memory_->Forward(floats("critic_input"), begins, floats("critic_memory_state"), of, count, steps);
    }
    sample.clear();
    given.row.clear();
    for (int64_t row = 0; row < steps * count; ++row) {
      const int64_t at = of[row % count] * steps + row / count;
      if (valid != nullptr && !valid[at]) continue;
      sample.push_back(at);
      given.row.push_back(row);
    }
    ComputeRows(samples, sample.data(), static_cast<int64_t>(sample.size()), config, weight, &given, loss);
    memory_->Backward();
    if (critic_memory_) critic_memory_->Backward();
  }
}

void FusedGradient::TakeGiven(const Given& given, const int64_t* index, int64_t first, int64_t rows) {
  const int64_t H = obs_.width, G = critic_input_ ? critic_input_->width - H : 0;
  for (int64_t i = 0; i < rows; ++i) {
    const int64_t row = given.row[first + i];
    std::copy_n(given.policy->output() + row * given.policy->stride(), H, obs_.buffer.data() + i * obs_.stride);
    if (!critic_input_) continue;
    float* const to = critic_input_->buffer.data() + i * critic_input_->stride;
    std::copy_n(given.value->output() + row * given.value->stride(), H, to);
    if (G > 0) std::copy_n(given.global_state + index[i] * G, G, to + H);
  }
}

void FusedGradient::GiveBack(const Given& given, int64_t first, int64_t rows) const {
  const auto add = [&](const Rows& from, FusedMemory* memory) {
    for (int64_t i = 0; i < rows; ++i) {
      const float* const delta = from.delta.data() + i * from.stride;
      float* const to = memory->delta() + given.row[first + i] * memory->stride();
      AddTo(obs_.width, delta, to);
    }
  };
  add(obs_, given.policy);
  if (critic_input_) add(*critic_input_, given.value);
}

void FusedGradient::ComputeRows(const Minibatch& samples, const int64_t* index, int64_t size,
                                const v1::PpoConfig& config, double weight, const Given* given, PpoLossValues& loss) {
  const float* const obs = samples["obs"].data_ptr<float>();
  const float* const critic_input =
      critic_input_ && given == nullptr ? samples["critic_input"].data_ptr<float>() : nullptr;
  const torch::Tensor& action = samples["action"];
  Layer &policy = policy_.back(), &value = value_.back();
  const int64_t actions = policy.packed.outputs(), stride = Padded(actions);
  LossRows rows(samples, weight);
  for (int64_t first = 0; first < size; first += kRows) {
    rows.index = index + first;
    rows.size = std::min(kRows, size - first);
    if (given != nullptr) {
      TakeGiven(*given, rows.index, first, rows.size);
    } else {
      obs_.Copy(obs, rows.index, 0, rows.size);
      if (critic_input_) critic_input_->Copy(critic_input, rows.index, 0, rows.size);
    }
    const Input input = obs_.input();
    const Input features = Features(obs_);
    Input value_features = critic_input_ ? critic_input_->input() : features;
    Forward(trunk_, trunk_.size(), input, rows.size);
    Forward(policy_, policy_.size() - 1, features, rows.size);
    Forward(value_, value_.size() - 1, value_features, rows.size);

    if (log_std_.defined()) {
      GaussianTerms(rows, policy.output.data(), stride, log_std_.data_ptr<float>(), action.data_ptr<float>(), actions,
                    config, policy.delta.data(), grad_log_std_.data_ptr<float>(), loss);
    } else {
      CategoricalTerms(rows, policy.output.data(), stride, action.data_ptr<int64_t>(), actions, config,
                       policy.delta.data(), loss);
    }
    ValueTerms(rows, value.output.data(), Padded(1), config, value.delta.data(), loss);

    Backward(policy_, features, rows.size);
    value_features.accumulates = !critic_input_;
    Backward(value_, value_features, rows.size);
    if (!trunk_.empty()) {
      ActivateBackward(activation_, features.data, features.delta, rows.size * features.stride);
      Backward(trunk_, input, rows.size);
    }
    if (given != nullptr) GiveBack(*given, first, rows.size);
  }
}

torch::Tensor FusedGradient::Values(const torch::Tensor& input) {
  return Output(input, Head::kValue).view({input.size(0)});
}

torch::Tensor FusedGradient::PolicyHead(const torch::Tensor& obs) { return Output(obs, Head::kPolicy); }

torch::Tensor FusedGradient::Output(const torch::Tensor& input, Head which) {
  const torch::Tensor in = input.contiguous();
  const int64_t outputs = (which == Head::kPolicy ? policy_ : value_).back().packed.outputs();
  torch::Tensor out = torch::empty({input.size(0), outputs});
  const float* const from = in.data_ptr<float>();
  float* const to = out.data_ptr<float>();
  ForParts(input.size(0), kRows, kTiles, [&](FusedGradient& worker, int, int64_t first, int64_t count) {
    worker.OutputPart(from, first, count, which, to + first * outputs);
  });
  return out;
}

MemoryRun FusedGradient::Remember(const MemoryCell& cell, const torch::Tensor& input, const torch::Tensor& begins,
                                  const torch::Tensor& state) {
  const bool critics = network_.critic_memory().exists() && cell.weight_ih.is_same(network_.critic_memory().weight_ih);
  const torch::Tensor in = input.contiguous(), fresh = begins.contiguous(), first_state = state.contiguous();
  const int64_t steps = in.size(0), columns = in.size(1);
  MemoryRun result{torch::empty({steps, columns, cell.size()}), {}};
  if (cell.kind == MemoryKind::kLstm) result.cell = torch::empty_like(result.output);
  const FusedMemory::Run run{in.data_ptr<float>(),
                             fresh.data_ptr<bool>(),
                             first_state.data_ptr<float>(),
                             steps,
                             columns,
                             result.output.data_ptr<float>(),
                             result.cell.defined() ? result.cell.data_ptr<float>() : nullptr};
  ForParts(columns, kColumns, 1, [&](FusedGradient& worker, int, int64_t first, int64_t count) {
    FusedMemory& memory = critics ? *worker.critic_memory_ : *worker.memory_;
    memory.Pack();
    memory.RunColumns(run, first, count);
  });
  return result;
}

void FusedGradient::OutputPart(const float* input, int64_t first, int64_t count, Head which, float* out) {
  Pack();
  Stack& stack = which == Head::kPolicy ? policy_ : value_;
  Rows& rows = which == Head::kValue && critic_input_ ? *critic_input_ : obs_;
  const Layer& head = stack.back();
  const int64_t outputs = head.packed.outputs(), stride = Padded(outputs);
  for (const int64_t end = first + count; first < end; first += kRows) {
    const int64_t now = std::min(kRows, end - first);
    rows.Copy(input, nullptr, first, now);
    Forward(trunk_, trunk_.size(), rows.input(), now);
    Forward(stack, stack.size() - 1, Features(rows), now);
    for (int64_t i = 0; i < now; ++i, out += outputs) {
      std::copy(head.output.data() + i * stride, head.output.data() + i * stride + outputs, out);
    }
  }
}

}  // namespace skein
