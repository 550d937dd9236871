// SPDX-License-Identifier: Apache-2.0
// Networks with a memory: what their policies do is what PyTorch's own cells do.
#include <gtest/gtest.h>
#include <torch/nn/modules/rnn.h>
#include <torch/types.h>
#include <torch/utils.h>

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "learner/network/memory_cell.h"
#include "learner/network/policy_snapshot.h"
#include "policy/snapshot.h"
#include "tests/learner/torch_policy.h"

namespace skein {
namespace {

ActorCriticOptions Options(MemoryKind memory) {
  ActorCriticOptions options;
  options.obs_size = 3;
  options.action_size = 2;
  options.memory = memory;
  options.memory_size = 21;
  options.hidden = {8};
  options.policy_head_scale = 1;
  return options;
}

std::map<std::string, torch::Tensor> Parameters(const ActorCritic& network) {
  const auto parameters = network.PolicyParameters();
  return {parameters.begin(), parameters.end()};
}

template <typename Cell>
void Fill(const std::map<std::string, torch::Tensor>& parameters, Cell* cell) {
  (*cell)->weight_ih.copy_(parameters.at("memory.weight_ih"));
  (*cell)->weight_hh.copy_(parameters.at("memory.weight_hh"));
  (*cell)->bias_ih.copy_(parameters.at("memory.bias_ih"));
  (*cell)->bias_hh.copy_(parameters.at("memory.bias_hh"));
}

TEST(Memory, ActsAsPyTorchsCells) {
  const torch::NoGradGuard no_grad;
  for (const MemoryKind memory : {MemoryKind::kGru, MemoryKind::kLstm}) {
    const ActorCriticOptions options = Options(memory);
    const ActorCritic network(options, 5);
    for (auto& [name, parameter] : Parameters(network)) {
      if (parameter.dim() == 1) torch::Tensor(parameter).uniform_(-0.5, 0.5);  // Biases begin as zeros.
    }
    const auto parameters = Parameters(network);
    const ObsScale scale = {torch::tensor({1.0f, -2.0f, 0.5f}), torch::tensor({2.0f, 0.25f, 1.0f})};
    const auto policy = ReadSnapshot(MakeSnapshot(7, network, scale), options);
    ASSERT_TRUE(policy.ok()) << policy.status();

    torch::nn::GRUCell gru(3, 21);
    torch::nn::LSTMCell lstm(3, 21);
    if (memory == MemoryKind::kGru) Fill(parameters, &gru);
    if (memory == MemoryKind::kLstm) Fill(parameters, &lstm);
    constexpr int64_t kRows = 4;
    torch::Tensor h = torch::zeros({kRows, 21}), c = torch::zeros({kRows, 21});
    std::vector<float> state(static_cast<size_t>(kRows * options.state_size()));
    for (int step = 0; step < 12; ++step) {
      const torch::Tensor obs = (torch::arange(kRows * 3, torch::kFloat32) + step).sin().view({kRows, 3});
      torch::Tensor head = torch::empty({kRows, 2});
      (*policy)->Act(obs.data_ptr<float>(), state.data(), kRows, head.data_ptr<float>(), state.data());
      if (memory == MemoryKind::kGru) {
        h = gru->forward(scale.Apply(obs), h);
      } else {
        std::tie(h, c) = lstm->forward(scale.Apply(obs), std::make_tuple(h, c));
      }
      const torch::Tensor features =
          torch::linear(h, parameters.at("policy.0.weight"), parameters.at("policy.0.bias")).tanh();
      const torch::Tensor want =
          torch::linear(features, parameters.at("policy.head.weight"), parameters.at("policy.head.bias"));
      ASSERT_TRUE(head.allclose(want, 1e-5, 2e-6)) << head << want;
      const torch::Tensor want_state = memory == MemoryKind::kGru ? h : torch::cat({h, c}, 1);
      ASSERT_TRUE(torch::tensor(state).view_as(want_state).allclose(want_state, 1e-5, 2e-6));
    }
  }
}

TEST(Memory, ItsParametersComeFirstAndBeginOrthogonal) {
  for (const MemoryKind memory : {MemoryKind::kGru, MemoryKind::kLstm}) {
    const ActorCritic network(Options(memory), 5), same(Options(memory), 5), other(Options(memory), 6);
    const auto parameters = network.PolicyParameters();
    const auto want = PolicyParameters(Options(memory));
    ASSERT_EQ(parameters.size(), want.size());
    for (size_t i = 0; i < want.size(); ++i) {
      EXPECT_EQ(parameters[i].first, want[i].name);
      EXPECT_EQ(parameters[i].second.sizes(), torch::IntArrayRef(want[i].shape));
    }
    const torch::Tensor weight = parameters[1].second;  // [G H, H], gain 1.
    EXPECT_TRUE(weight.t().matmul(weight).allclose(torch::eye(21), 1e-4, 1e-5));
    EXPECT_TRUE(weight.equal(same.PolicyParameters()[1].second));
    EXPECT_FALSE(weight.equal(other.PolicyParameters()[1].second));
    EXPECT_EQ(parameters[2].second.abs().max().item<float>(), 0);
  }
}

TEST(Memory, TheNetworksReadWhatItGives) {
  ActorCriticOptions options = Options(MemoryKind::kGru);
  const ActorCritic shared(options, 5);
  EXPECT_EQ(shared.PolicyHead(torch::zeros({4, 21})).sizes(), torch::IntArrayRef({4, 2}));
  EXPECT_EQ(shared.Value(torch::zeros({4, 21})).size(0), 4);
  EXPECT_FALSE(shared.critic_memory().exists());
  options.critic_input_size = 5;  // A central critic: two numbers of global state beside the memory.
  EXPECT_EQ(ActorCritic(options, 5).Value(torch::zeros({4, 23})).size(0), 4);
  options.critic_memory = true;
  const ActorCritic separate(options, 5);
  EXPECT_EQ(separate.Value(torch::zeros({4, 21})).size(0), 4);
  EXPECT_EQ(separate.critic_memory().weight_ih.sizes(), torch::IntArrayRef({63, 5}));
  EXPECT_EQ(separate.PolicyParameters().size(), shared.PolicyParameters().size());
  EXPECT_EQ(separate.AllParameters().size(), shared.AllParameters().size() + 4);
}

// Random sequences and the memories' weights, of one precision.
struct Sample {
  explicit Sample(MemoryKind kind, torch::ScalarType type = torch::kFloat64, int64_t steps = 40)
      : network(Options(kind), 5) {
    torch::manual_seed(1);
    network.to(type);
    cell = network.memory();
    input = torch::randn({steps, kSequences, 3}, type);
    begins = torch::rand({steps, kSequences}) < 0.1;
    state = torch::randn({kSequences, cell.state_size()}, type);
    weights = torch::randn({steps, kSequences, cell.size()}, type);
  }
  // Outputs and gradients of sum(weights * outputs), where the steps are run `chunk` at a time.
  std::vector<torch::Tensor> InChunks(int64_t chunk) {
    torch::Tensor at = state.clone().set_requires_grad(true), loss = torch::zeros({}, input.options());
    const torch::Tensor first = at;
    std::vector<torch::Tensor> outputs;
    for (int64_t t = 0; t < input.size(0); t += chunk) {
      const int64_t steps = std::min(chunk, input.size(0) - t);
      const torch::Tensor fresh = begins.defined() ? begins.narrow(0, t, steps) : begins;
      const MemoryRun run = RunMemory(cell, input.narrow(0, t, steps), fresh, at);
      at = run.States()[-1];
      loss = loss + (run.output * weights.narrow(0, t, steps)).sum();
      outputs.push_back(run.output);
    }
    for (const torch::Tensor& weight : Weights()) weight.mutable_grad() = torch::Tensor();
    loss.backward();
    std::vector<torch::Tensor> all = {torch::cat(outputs).detach(), at.detach(), first.grad()};
    for (const torch::Tensor& weight : Weights()) all.push_back(weight.grad());
    return all;
  }
  std::vector<torch::Tensor> Weights() const { return {cell.weight_ih, cell.weight_hh, cell.bias_ih, cell.bias_hh}; }

  static constexpr int64_t kSequences = 4;
  ActorCritic network;
  MemoryCell cell;
  torch::Tensor input, begins, state, weights;
};

TEST(Memory, ChunksOfAnySizeGiveTheSameOutputsAndGradients) {
  for (const MemoryKind kind : {MemoryKind::kGru, MemoryKind::kLstm}) {
    for (const auto& [type, bound] : {std::pair(torch::kFloat64, 1e-12), std::pair(torch::kFloat32, 1e-6)}) {
      Sample sample(kind, type);
      const std::vector<torch::Tensor> whole = sample.InChunks(40);
      for (const int64_t chunk : {1, 7, 32}) {
        const std::vector<torch::Tensor> parts = sample.InChunks(chunk);
        for (size_t i = 0; i < whole.size(); ++i) {
          const double scale = std::max(1.0, whole[i].abs().max().item<double>());
          EXPECT_LT((parts[i] - whole[i]).abs().max().item<double>(), bound * scale) << chunk << " " << i;
        }
      }
    }
  }
}

TEST(Memory, InDoublePrecisionChunksOfAnySizeGiveTheSameOutputsAndGradientsToTheBit) {
  for (const MemoryKind kind : {MemoryKind::kGru, MemoryKind::kLstm}) {
    Sample sample(kind);
    const std::vector<torch::Tensor> whole = sample.InChunks(40);
    for (const int64_t chunk : {1, 7, 32}) {
      const std::vector<torch::Tensor> parts = sample.InChunks(chunk);
      for (size_t i = 0; i < whole.size(); ++i) EXPECT_TRUE(parts[i].equal(whole[i])) << chunk << " " << i;
    }
  }
}

// Steps behind the end change no bit of what is before it, and where the loss does not read them, of the gradients
// nothing but the order of sums.
TEST(Memory, PaddingBehindTheEndChangesNothing) {
  for (const MemoryKind kind : {MemoryKind::kGru, MemoryKind::kLstm}) {
    for (const auto& [type, bound] : {std::pair(torch::kFloat64, 1e-12), std::pair(torch::kFloat32, 1e-6)}) {
      Sample exact(kind, type), padded(kind, type);  // The same numbers.
      exact.input = exact.input.narrow(0, 0, 23);
      exact.begins = exact.begins.narrow(0, 0, 23);
      exact.weights = exact.weights.narrow(0, 0, 23);
      padded.weights.narrow(0, 23, 17).zero_();
      const std::vector<torch::Tensor> want = exact.InChunks(23), got = padded.InChunks(40);
      EXPECT_TRUE(got[0].narrow(0, 0, 23).equal(want[0]));
      for (size_t i = 2; i < want.size(); ++i) {
        const double scale = std::max(1.0, want[i].abs().max().item<double>());
        EXPECT_LT((got[i] - want[i]).abs().max().item<double>(), bound * scale) << i;
      }
    }
  }
}

// PyTorch's own cells, with zeros written where an episode begins.
TEST(Memory, RunsAsPyTorchsCellsStepByStep) {
  const torch::NoGradGuard no_grad;
  for (const MemoryKind kind : {MemoryKind::kGru, MemoryKind::kLstm}) {
    const Sample sample(kind);
    const MemoryCell& w = sample.cell;
    const MemoryRun run = RunMemory(w, sample.input, sample.begins, sample.state);
    const torch::Tensor rows = torch::tensor({7, 0, 159}, torch::kInt64);  // Of 40 steps of 4 sequences.
    ASSERT_TRUE(run.StatesOf(rows).equal(run.States().flatten(0, 1).index_select(0, rows)));
    torch::Tensor state = sample.state;
    for (int64_t t = 0; t < 40; ++t) {
      state = state * sample.begins[t].logical_not().unsqueeze(1);
      if (kind == MemoryKind::kGru) {
        state = torch::gru_cell(sample.input[t], state, w.weight_ih, w.weight_hh, w.bias_ih, w.bias_hh);
      } else {
        const auto [h, c] = torch::lstm_cell(sample.input[t], {state.narrow(1, 0, 21), state.narrow(1, 21, 21)},
                                             w.weight_ih, w.weight_hh, w.bias_ih, w.bias_hh);
        state = torch::cat({h, c}, 1);
      }
      ASSERT_TRUE(run.output[t].allclose(state.narrow(1, 0, 21), 1e-12, 1e-12));
      ASSERT_TRUE(run.States()[t].allclose(state, 1e-12, 1e-12));
      ASSERT_TRUE(run.StatesAfter(t).equal(run.States()[t]));
    }
  }
}

TEST(Memory, AnEpisodesBeginInsideEqualsTwoRuns) {
  for (const MemoryKind kind : {MemoryKind::kGru, MemoryKind::kLstm}) {
    const Sample sample(kind, torch::kFloat32);
    torch::Tensor begins = torch::zeros_like(sample.begins);
    begins[17] = true;
    const torch::Tensor whole = RunMemory(sample.cell, sample.input, begins, sample.state).output;
    const torch::Tensor before = RunMemory(sample.cell, sample.input.narrow(0, 0, 17), {}, sample.state).output;
    const torch::Tensor after =
        RunMemory(sample.cell, sample.input.narrow(0, 17, 23), {}, torch::zeros_like(sample.state)).output;
    EXPECT_TRUE(whole.allclose(torch::cat({before, after}), 1e-6, 1e-6));
    // Nothing of before is left: other values there change no bit after.
    torch::Tensor other = sample.input.clone();
    other.narrow(0, 0, 17).mul_(-3);
    EXPECT_TRUE(RunMemory(sample.cell, other, begins, sample.state * 2)
                    .output.narrow(0, 17, 23)
                    .equal(whole.narrow(0, 17, 23)));
  }
}

TEST(Memory, AnEpisodesBeginInsideHasTheGradientsOfTwoRuns) {
  for (const MemoryKind kind : {MemoryKind::kGru, MemoryKind::kLstm}) {
    for (const auto& [type, bound] : {std::pair(torch::kFloat64, 1e-12), std::pair(torch::kFloat32, 1e-6)}) {
      Sample whole(kind, type), first(kind, type), second(kind, type);  // The same numbers.
      whole.begins.zero_()[17] = true;
      first.begins = second.begins = torch::Tensor();
      first.input = first.input.narrow(0, 0, 17);
      first.weights = first.weights.narrow(0, 0, 17);
      second.input = second.input.narrow(0, 17, 23);
      second.weights = second.weights.narrow(0, 17, 23);
      second.state.zero_();
      const std::vector<torch::Tensor> want = whole.InChunks(40);
      const std::vector<torch::Tensor> before = first.InChunks(17), after = second.InChunks(23);
      // Outputs, the last state, the gradient by the first one and those of the weights.
      std::vector<torch::Tensor> got = {torch::cat({before[0], after[0]}), after[1], before[2]};
      for (size_t i = 3; i < want.size(); ++i) got.push_back(before[i] + after[i]);
      for (size_t i = 0; i < want.size(); ++i) {
        const double scale = std::max(1.0, want[i].abs().max().item<double>());
        EXPECT_LT((got[i] - want[i]).abs().max().item<double>(), bound * scale) << i;
      }
    }
  }
}

TEST(Memory, SkippedStepsLeaveTheStateAsItIs) {
  for (const MemoryKind kind : {MemoryKind::kGru, MemoryKind::kLstm}) {
    const Sample sample(kind, torch::kFloat32, 9);
    torch::Tensor skips = torch::zeros({9, Sample::kSequences}, torch::kBool);
    skips.narrow(0, 0, 4) = true;  // In front, as before a sequence that has fewer steps before it than others.
    const torch::Tensor begins = sample.begins.logical_and(skips.logical_not());
    const torch::Tensor got = RunMemory(sample.cell, sample.input, begins, sample.state, skips).States();
    EXPECT_TRUE(got[3].equal(sample.state));
    const torch::Tensor want =
        RunMemory(sample.cell, sample.input.narrow(0, 4, 5), begins.narrow(0, 4, 5), sample.state).States();
    EXPECT_TRUE(got.narrow(0, 4, 5).allclose(want, 1e-6, 1e-6));
    torch::Tensor other = sample.input.clone();
    other.narrow(0, 0, 4).fill_(1e6);
    EXPECT_TRUE(RunMemory(sample.cell, other, begins, sample.state, skips).States().equal(got));
  }
}

}  // namespace
}  // namespace skein
