// SPDX-License-Identifier: Apache-2.0
// The hand-written gradient through a memory is autograd's.
#include <gtest/gtest.h>
#include <torch/types.h>
#include <torch/utils.h>

#include <algorithm>
#include <numeric>
#include <utility>
#include <vector>

#include "learner/algorithm/ppo/fused_gradient.h"
#include "learner/algorithm/ppo/ppo_objective.h"
#include "tests/learner/memory_sample.h"
#include "tests/learner/ppo_sample.h"

namespace skein {
namespace {

constexpr int64_t kSteps = 9, kLong = 40;

// Samples of `sequences`, as Sequences makes them. Fills up the last steps of some where `padded`.
Minibatch RandomSequences(const ActorCritic& network, int64_t sequences, bool padded, int64_t steps = kSteps) {
  const ActorCriticOptions& options = network.options();
  Minibatch samples;
  samples["obs"] = torch::randn({sequences, steps, options.obs_size});
  samples["begins"] = torch::rand({sequences, steps}) < 0.15;
  samples["memory_state"] = torch::randn({sequences, options.state_size()});
  const int64_t C = options.critic_input_size > 0 ? options.critic_input_size : options.obs_size;
  if (options.critic_memory) {
    samples["critic_input"] = torch::randn({sequences, steps, C});
    samples["critic_memory_state"] = torch::randn({sequences, options.state_size()});
  } else if (options.critic_input_size > 0) {
    samples["global_state"] = torch::randn({sequences, steps, C - options.obs_size});
  }
  samples["action"] = options.discrete ? torch::randint(options.action_size, {sequences, steps}, torch::kInt64)
                                       : torch::randn({sequences, steps, options.action_size});
  samples["log_prob"] = -1 + 0.3 * torch::randn({sequences, steps});
  for (const char* const name : {"advantage", "old_value", "value_target"}) {
    samples[name] = torch::randn({sequences, steps});
  }
  if (padded) samples["valid"] = torch::rand({sequences, steps}) < 0.7;
  return samples;
}

void ClearGradients(const ActorCritic& network) {
  for (const auto& [name, parameter] : network.AllParameters()) {
    torch::Tensor(parameter).mutable_grad() = torch::zeros_like(parameter);
  }
}

std::vector<torch::Tensor> Gradients(const ActorCritic& network) {
  std::vector<torch::Tensor> gradients;
  for (const auto& [name, parameter] : network.AllParameters()) gradients.push_back(parameter.grad().clone());
  return gradients;
}

v1::PpoConfig Config() {
  v1::PpoConfig config = SampleConfig().ppo();
  config.set_entropy_coefficient(0.01);
  config.set_value_clip(0.5);
  return config;
}

void ExpectAutogradsGradient(const ActorCriticOptions& options, bool padded, int threads) {
  torch::manual_seed(2);
  const ActorCritic network(options, 3);
  for (const auto& [name, parameter] : network.AllParameters()) {
    const torch::NoGradGuard no_grad;
    if (parameter.dim() == 1) torch::Tensor(parameter).uniform_(-0.3, 0.3);
  }
  const v1::PpoConfig config = Config();
  const Minibatch samples = RandomSequences(network, 70, padded);
  const torch::Tensor index = torch::randperm(70, torch::kInt64).narrow(0, 0, 55);
  const Minibatch chosen = samples.Select(index);
  const int64_t count = padded ? chosen["valid"].sum().item<int64_t>() : 55 * kSteps;

  ClearGradients(network);
  const PpoObjective objective(config, network, torch::kFloat32);
  const Loss::Terms want = objective.Compute(chosen, {});
  const double weight = 55.0 / static_cast<double>(count);  // The terms are sums over 55 sequences.
  (want.total * weight).backward();
  const std::vector<torch::Tensor> gradients = Gradients(network);

  ClearGradients(network);
  ASSERT_TRUE(FusedGradient::Supports(network));
  FusedGradient fused(network, threads);
  const PpoLossValues got = fused.Compute(samples, index.data_ptr<int64_t>(), 55, config, count);
  EXPECT_NEAR(got.total, want.total.item<double>() * weight, 1e-5);
  EXPECT_NEAR(got.policy, want.stats[0].item<double>() * weight, 1e-5);
  EXPECT_NEAR(got.value, want.stats[1].item<double>() * weight, 1e-5);
  EXPECT_NEAR(got.entropy, want.stats[2].item<double>() * weight, 1e-5);
  const auto parameters = network.AllParameters();
  const std::vector<torch::Tensor> by_hand = Gradients(network);
  for (size_t i = 0; i < parameters.size(); ++i) {
    EXPECT_TRUE(by_hand[i].allclose(gradients[i], 1e-4, 2e-6))
        << parameters[i].first << " " << (by_hand[i] - gradients[i]).abs().max().item<float>();
    EXPECT_GT(gradients[i].abs().max().item<float>(), 0) << parameters[i].first;
  }
}

TEST(FusedMemory, GradientIsAutograds) {
  for (const MemoryKind kind : {MemoryKind::kGru, MemoryKind::kLstm}) {
    for (const bool padded : {false, true}) {
      for (const int threads : {1, 3}) {
        SCOPED_TRACE(testing::Message() << (kind == MemoryKind::kGru ? "gru " : "lstm ") << padded << threads);
        ExpectAutogradsGradient(MemoryNetwork(kind), padded, threads);
        ExpectAutogradsGradient(MemoryNetwork(kind, true, /*shared_trunk=*/true), padded, threads);
        ExpectAutogradsGradient(MemoryNetwork(kind, true, false, /*critic_memory=*/true), padded, threads);
        ExpectAutogradsGradient(MemoryNetwork(kind, false, false, false, /*central=*/true), padded, threads);
        ExpectAutogradsGradient(MemoryNetwork(kind, false, false, true, true), padded, threads);
        ActorCriticOptions wide = MemoryNetwork(kind);
        wide.memory_size = 32;
        ExpectAutogradsGradient(wide, padded, threads);
        wide.hidden = {};
        ExpectAutogradsGradient(wide, padded, threads);
      }
    }
  }
}

// One memory over sequences of `steps`, by hand: the loss is the sum of weights x outputs.
struct ByHand {
  ByHand(const ActorCritic& network, const Minibatch& samples, torch::Tensor weights)
      : cell(network.memory()),
        obs(samples["obs"]),
        begins(samples["begins"]),
        state(samples["memory_state"]),
        weights(std::move(weights)) {
    for (const torch::Tensor& weight : {cell.weight_ih, cell.weight_hh, cell.bias_ih, cell.bias_hh}) {
      gradients.push_back(torch::zeros_like(weight));
    }
  }

  // Outputs [S, L, H], the gradient by the first state [S, state_size] (zeros where an episode begins with the first
  // step), and those of the weights, where the steps are run `chunk` at a time and the gradient flows through all of
  // them.
  std::vector<torch::Tensor> InChunks(int64_t chunk) {
    const int64_t S = obs.size(0), L = obs.size(1), H = cell.size();
    const bool lstm = cell.kind == MemoryKind::kLstm;
    std::vector<float*> to;
    for (const torch::Tensor& gradient : gradients) to.push_back(gradient.zero_().data_ptr<float>());
    FusedMemory memory(cell, to);
    memory.Pack();
    std::vector<int64_t> index(S);
    std::iota(index.begin(), index.end(), 0);
    // Rows of the memory, [S, H], without what fills them up.
    const auto rows = [&](const float* from) {
      return torch::from_blob(const_cast<float*>(from), {S, memory.stride()}).narrow(1, 0, H).clone();
    };
    const auto forward = [&](int64_t t, const torch::Tensor& before) {
      const int64_t steps = std::min(chunk, L - t);
      const torch::Tensor x = obs.narrow(1, t, steps).contiguous(), fresh = begins.narrow(1, t, steps).contiguous();
      memory.Forward(x.data_ptr<float>(), fresh.data_ptr<bool>(), before.data_ptr<float>(), index.data(), S, steps);
      return steps;
    };
    std::vector<torch::Tensor> states = {state}, outputs;
    for (int64_t t = 0; t < L; t += chunk) {
      const int64_t steps = forward(t, states.back());
      for (int64_t i = 0; i < steps; ++i) outputs.push_back(rows(memory.output() + i * S * memory.stride()));
      states.push_back(lstm ? torch::cat({outputs.back(), rows(memory.cell())}, 1) : outputs.back());
    }
    torch::Tensor by_state = torch::zeros_like(state);  // Of the state after the chunk in hand.
    for (int64_t k = static_cast<int64_t>(states.size()) - 2; k >= 0; --k) {
      const int64_t t = k * chunk, steps = forward(t, states[k]);
      const torch::Tensor delta = torch::from_blob(memory.delta(), {steps, S, memory.stride()}).narrow(2, 0, H);
      delta.copy_(weights.narrow(1, t, steps).transpose(0, 1));
      delta[steps - 1].add_(by_state.narrow(1, 0, H));
      if (lstm) {
        torch::from_blob(memory.cell_delta(), {S, memory.stride()}).narrow(1, 0, H).copy_(by_state.narrow(1, H, H));
      }
      memory.Backward();
      const torch::Tensor of_h = rows(memory.state_delta());
      by_state = (lstm ? torch::cat({of_h, rows(memory.cell_delta())}, 1) : of_h)
                     .masked_fill(begins.select(1, t).unsqueeze(1), 0);
    }
    std::vector<torch::Tensor> all = {torch::stack(outputs, 1), by_state};
    for (const torch::Tensor& gradient : gradients) all.push_back(gradient.clone());
    return all;
  }

  // The same by RunMemory and autograd.
  std::vector<torch::Tensor> ByAutograd() const {
    const torch::Tensor first = state.clone().set_requires_grad(true);
    const std::vector<torch::Tensor> parameters = {cell.weight_ih, cell.weight_hh, cell.bias_ih, cell.bias_hh};
    for (const torch::Tensor& parameter : parameters) parameter.mutable_grad() = torch::Tensor();
    const torch::Tensor output = RunMemory(cell, obs.transpose(0, 1), begins.transpose(0, 1), first).output;
    (output * weights.transpose(0, 1)).sum().backward();
    std::vector<torch::Tensor> all = {output.detach().transpose(0, 1), first.grad()};
    for (const torch::Tensor& parameter : parameters) all.push_back(parameter.grad());
    return all;
  }

  const MemoryCell cell;
  torch::Tensor obs, begins, state, weights;
  std::vector<torch::Tensor> gradients;
};

ActorCritic LongMemory(MemoryKind kind) {
  ActorCriticOptions options = MemoryNetwork(kind);
  options.memory_size = 21;
  return ActorCritic(options, 3);
}

void ExpectNear(const std::vector<torch::Tensor>& got, const std::vector<torch::Tensor>& want, double bound) {
  ASSERT_EQ(got.size(), want.size());
  for (size_t i = 0; i < want.size(); ++i) {
    const double scale = std::max(1.0, want[i].abs().max().item<double>());
    EXPECT_LT((got[i] - want[i]).abs().max().item<double>(), bound * scale) << i;
  }
}

// Outputs to the bit; gradients up to the order of sums, which follows the chunks.
TEST(FusedMemory, ChunksOfAnySizeGiveTheSameOutputsAndGradients) {
  for (const MemoryKind kind : {MemoryKind::kGru, MemoryKind::kLstm}) {
    torch::manual_seed(7);
    const ActorCritic network = LongMemory(kind);
    ByHand by_hand(network, RandomSequences(network, 4, false, kLong), torch::randn({4, kLong, 21}));
    const std::vector<torch::Tensor> whole = by_hand.InChunks(kLong);
    ExpectNear(whole, by_hand.ByAutograd(), 1e-5);
    for (const int64_t chunk : {1, 7, 32}) {
      SCOPED_TRACE(testing::Message() << (kind == MemoryKind::kGru ? "gru " : "lstm ") << chunk);
      const std::vector<torch::Tensor> parts = by_hand.InChunks(chunk);
      EXPECT_TRUE(parts[0].equal(whole[0]));
      ExpectNear(parts, whole, 1e-6);
    }
  }
}

TEST(FusedMemory, AnEpisodesBeginInsideEqualsTwoFragments) {
  for (const MemoryKind kind : {MemoryKind::kGru, MemoryKind::kLstm}) {
    torch::manual_seed(8);
    const ActorCritic network = LongMemory(kind);
    Minibatch samples = RandomSequences(network, 4, false, kLong);
    samples["begins"].zero_().select(1, 17).fill_(true);
    const torch::Tensor weights = torch::randn({4, kLong, 21});
    const std::vector<torch::Tensor> whole = ByHand(network, samples, weights).InChunks(kLong);

    Minibatch first, second;
    for (const char* const name : {"obs", "begins"}) {
      first[name] = samples[name].narrow(1, 0, 17).contiguous();
      second[name] = samples[name].narrow(1, 17, 23).contiguous();
    }
    second["begins"].zero_();  // Its state says so.
    first["memory_state"] = samples["memory_state"];
    second["memory_state"] = torch::zeros_like(samples["memory_state"]);
    const std::vector<torch::Tensor> before = ByHand(network, first, weights.narrow(1, 0, 17)).InChunks(17);
    const std::vector<torch::Tensor> after = ByHand(network, second, weights.narrow(1, 17, 23)).InChunks(23);
    std::vector<torch::Tensor> both = {torch::cat({before[0], after[0]}, 1), before[1]};
    for (size_t i = 2; i < before.size(); ++i) both.push_back(before[i] + after[i]);
    EXPECT_TRUE(both[0].equal(whole[0]));
    EXPECT_TRUE(both[1].equal(whole[1]));
    ExpectNear(both, whole, 1e-6);
  }
}

// A run without gradients is a run of RunMemory, and no bit of it depends on the number of threads.
TEST(FusedMemory, RemembersAsRunMemoryOnAnyNumberOfThreads) {
  const torch::NoGradGuard no_grad;
  for (const MemoryKind kind : {MemoryKind::kGru, MemoryKind::kLstm}) {
    torch::manual_seed(5);
    const ActorCritic network(MemoryNetwork(kind, false, false, /*critic_memory=*/true, /*central=*/true), 3);
    ClearGradients(network);
    for (const MemoryCell& cell : {network.memory(), network.critic_memory()}) {
      cell.bias_ih.uniform_(-0.3, 0.3);
      cell.bias_hh.uniform_(-0.3, 0.3);
      const torch::Tensor input = torch::randn({kSteps, 13, cell.weight_ih.size(1)});
      const torch::Tensor begins = torch::rand({kSteps, 13}) < 0.2, state = torch::randn({13, cell.state_size()});
      const MemoryRun want = RunMemory(cell, input, begins, state);
      const MemoryRun got = FusedGradient(network).Remember(cell, input, begins, state);
      EXPECT_TRUE(got.States().allclose(want.States(), 1e-5, 1e-6));
      for (const int threads : {2, 3}) {
        EXPECT_TRUE(FusedGradient(network, threads).Remember(cell, input, begins, state).States().equal(got.States()));
      }
    }
  }
}

// It is the pass that gradients follow, to the bit.
TEST(FusedMemory, ColumnsHaveTheBitsOfSequences) {
  for (const MemoryKind kind : {MemoryKind::kGru, MemoryKind::kLstm}) {
    torch::manual_seed(5);
    const ActorCritic network = LongMemory(kind);
    ClearGradients(network);
    const Minibatch samples = RandomSequences(network, 4, false, kLong);
    const torch::Tensor want = ByHand(network, samples, torch::zeros({4, kLong, 21})).InChunks(kLong)[0];
    const torch::Tensor got =
        FusedGradient(network)
            .Remember(network.memory(), samples["obs"].transpose(0, 1), samples["begins"].t(), samples["memory_state"])
            .output;
    EXPECT_TRUE(got.transpose(0, 1).equal(want));
  }
}

// Steps after a sequence's end, however many, change no bit of its outputs, and of the gradient only the order of sums.
TEST(FusedMemory, LongerPaddingChangesNothing) {
  for (const MemoryKind kind : {MemoryKind::kGru, MemoryKind::kLstm}) {
    torch::manual_seed(4);
    const ActorCritic network(MemoryNetwork(kind), 3);
    ClearGradients(network);
    const MemoryCell& cell = network.memory();
    const Minibatch samples = RandomSequences(network, 6, false, 12);
    const auto run = [&](int64_t steps) {
      std::vector<float*> gradients;
      for (const torch::Tensor& weight : {cell.weight_ih, cell.weight_hh, cell.bias_ih, cell.bias_hh}) {
        gradients.push_back(weight.grad().data_ptr<float>());
      }
      FusedMemory memory(cell, gradients);
      memory.Pack();
      const torch::Tensor obs = samples["obs"].narrow(1, 0, steps).contiguous();
      const torch::Tensor begins = samples["begins"].narrow(1, 0, steps).contiguous();
      const std::vector<int64_t> index = {4, 0, 5, 1};
      memory.Forward(obs.data_ptr<float>(), begins.data_ptr<bool>(), samples["memory_state"].data_ptr<float>(),
                     index.data(), 4, steps);
      return std::vector<float>(memory.output(), memory.output() + 7 * 4 * memory.stride());
    };
    EXPECT_EQ(run(7), run(12));
    EXPECT_EQ(run(7), run(8));
  }
}

// Sequences of one to seven steps, with whatever numbers behind their ends: by hand and by
// autograd. With the same rows in the same order, losses are equal to the bit; gradients up to the order of sums.
TEST(FusedMemory, PaddingBehindSequencesChangesNoLossAndNoGradient) {
  const std::vector<int64_t> ends = {3, 7, 1, 5, 7, 2};
  for (const MemoryKind kind : {MemoryKind::kGru, MemoryKind::kLstm}) {
    torch::manual_seed(9);
    const ActorCritic network(MemoryNetwork(kind, true, false, /*critic_memory=*/true), 3);
    const v1::PpoConfig config = Config();
    const Minibatch samples = RandomSequences(network, 6, false, 12);
    const Minibatch other = RandomSequences(network, 6, false, 12);
    const torch::Tensor valid = torch::arange(12).unsqueeze(0) < torch::tensor(ends).unsqueeze(1);
    std::vector<double> losses;
    std::vector<std::vector<torch::Tensor>> by_hand, by_autograd;
    // The longest sequence has no padding; then padding of both kinds of numbers.
    for (const auto& [steps, behind] : {std::pair(7, &samples), std::pair(9, &other), std::pair(12, &other)}) {
      Minibatch padded;
      for (const char* const name :
           {"obs", "critic_input", "begins", "action", "log_prob", "advantage", "old_value", "value_target"}) {
        torch::Tensor mine = valid;
        while (mine.dim() < samples[name].dim()) mine = mine.unsqueeze(2);
        padded[name] = torch::where(mine, samples[name], (*behind)[name]).narrow(1, 0, steps).contiguous();
      }
      for (const char* const name : {"memory_state", "critic_memory_state"}) padded[name] = samples[name];
      padded["valid"] = valid.narrow(1, 0, steps).contiguous();
      const std::vector<int64_t> index = {4, 0, 5, 1, 3, 2};
      ClearGradients(network);
      losses.push_back(FusedGradient(network).Compute(padded, index.data(), 6, config, 25).total);
      by_hand.push_back(Gradients(network));

      ClearGradients(network);
      PpoObjective(config, network, torch::kFloat32).Compute(padded, {}).total.backward();
      by_autograd.push_back(Gradients(network));
    }
    EXPECT_EQ(losses, std::vector<double>(3, losses[0]));
    for (size_t i = 1; i < 3; ++i) {
      SCOPED_TRACE(i);
      ExpectNear(by_hand[i], by_hand[0], 1e-6);
      ExpectNear(by_autograd[i], by_autograd[0], 1e-6);
    }
  }
}

// What the learner computes is what actors compute, up to rounding; an Adam step with it goes the same way.
TEST(FusedMemory, UpdatesEqualThoseOfAutograd) {
  for (const MemoryKind kind : {MemoryKind::kGru, MemoryKind::kLstm}) {
    torch::manual_seed(6);
    v1::RunConfig config = SampleConfig();
    config.mutable_ppo()->set_minibatch_size(24);
    config.mutable_ppo()->set_adam_epsilon(1e-3);
    config.mutable_ppo()->set_sequence_length(5);
    config.mutable_ppo()->set_burn_in(1);  // Autograd: the hand-written gradient has no burn-in.
    const ActorCriticOptions network = MemoryNetwork(kind, true, false, true, true);
    Ppo by_autograd(config, network, 5);
    config.mutable_ppo()->set_burn_in(0);
    Ppo by_hand(config, network, 5);
    // With one epoch of one minibatch, burn-in runs with the weights that the states were made with: it changes
    // nothing.
    for (Ppo* const ppo : {&by_autograd, &by_hand}) {
      v1::RunConfig once = config;
      once.mutable_ppo()->set_burn_in(ppo == &by_autograd ? 1 : 0);
      once.mutable_ppo()->set_epochs(1);
      once.mutable_ppo()->set_minibatch_size(100000);
      ppo->SetSettings(once);
    }
    const Batch batch = CollectRemembering(by_hand, 13, 6, 3);
    Train(by_autograd, batch, 0, 0);
    Train(by_hand, batch, 0, 0);
    EXPECT_LT(LargestDifference(by_hand.ModelState(), by_autograd.ModelState()), 1e-5);
  }
}

}  // namespace
}  // namespace skein
