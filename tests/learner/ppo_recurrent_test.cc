// SPDX-License-Identifier: Apache-2.0
// Training of networks with a memory: what PPO computes is what a literal loop over steps computes, however the steps
// are cut.
#include <gtest/gtest.h>
#include <torch/nn/utils/clip_grad.h>
#include <torch/optim/adam.h>
#include <torch/types.h>
#include <torch/utils.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <string>

#include "learner/algorithm/ppo/ppo_loss.h"
#include "learner/algorithm/returns/advantage.h"
#include "learner/algorithm/returns/posthumous_reward.h"
#include "learner/algorithm/returns/vtrace.h"
#include "learner/network/distribution.h"
#include "tests/learner/memory_sample.h"
#include "tests/learner/ppo_sample.h"
#include "tests/learner/rank_threads.h"

namespace skein {
namespace {

constexpr MemoryKind kKinds[] = {MemoryKind::kGru, MemoryKind::kLstm};

// The memories' outputs and the values that a literal loop over steps gives; [T + 1, M] rows.
class Literal {
 public:
  Literal(const ActorCritic& network, const Batch& batch) : network_(network), batch_(batch) {
    const int64_t N = batch["ended"].size(1), M = batch["reward"].size(1);
    T_ = batch["reward"].size(0), M_ = M;
    ended_ = batch["ended"].unsqueeze(2).expand({T_, N, M / N}).reshape({T_, M});
    critic_ = batch["obs"];
    final_critic_ = batch["final_obs"];
    if (!batch.has("state")) return;
    const int64_t G = batch["state"].size(2), A = M / N;
    state_ = batch["state"].unsqueeze(2).expand({T_ + 1, N, A, G}).reshape({T_ + 1, M, G});
    final_state_ = batch["final_state"].unsqueeze(1).expand({-1, A, G}).reshape({-1, G});
    critic_ = torch::cat({critic_, state_}, 2);
    final_critic_ = torch::cat({final_critic_, final_state_}, 1);
  }

  using Change = std::function<torch::Tensor(int64_t, const torch::Tensor&)>;
  // h of the policy's memory and input of the value function, [T + 1, M, ...].
  std::pair<torch::Tensor, torch::Tensor> Inputs(const Change& of_policy, const Change& of_critic) {
    const int64_t H = network_.memory().size();
    policy_states_ = LiteralStates(network_.memory(), batch_["obs"], ended_, batch_["first_policy_state"], of_policy);
    const torch::Tensor h = torch::stack(policy_states_).narrow(2, 0, H);
    if (network_.critic_memory().exists()) {
      critic_states_ =
          LiteralStates(network_.critic_memory(), critic_, ended_, batch_["first_policy_state"], of_critic);
      return {h, torch::stack(critic_states_).narrow(2, 0, H)};
    }
    return {h, state_.defined() ? torch::cat({h, state_}, 2) : h};
  }

  // Values of all steps, and of what follows each; in the value function's units. Without gradients.
  std::pair<torch::Tensor, torch::Tensor> Values() {
    const torch::NoGradGuard no_grad;
    const torch::Tensor input = Inputs({}, {}).second;
    const torch::Tensor all = network_.Value(input.flatten(0, 1)).view({T_ + 1, M_});
    torch::Tensor next = all.narrow(0, 1, T_).clone();
    const bool own = network_.critic_memory().exists();
    for (int64_t k = 0; k < batch_["final_index"].size(0); ++k) {
      const int64_t row = batch_["final_index"][k].item<int64_t>(), t = row / M_, m = row % M_;
      const auto& states = own ? critic_states_ : policy_states_;
      const torch::Tensor seen = own ? final_critic_[k] : batch_["final_obs"][k];
      torch::Tensor last =
          LiteralStep(own ? network_.critic_memory() : network_.memory(), seen.unsqueeze(0), states[t][m].unsqueeze(0))
              .narrow(1, 0, network_.memory().size());
      if (!own && final_state_.defined()) last = torch::cat({last, final_state_[k].unsqueeze(0)}, 1);
      next[t][m] = network_.Value(last)[0];
    }
    return {all.narrow(0, 0, T_), next};
  }

  // The states before step t of episodes that go on, after Inputs.
  torch::Tensor StateBefore(bool of_critic, int64_t t) const {
    const auto& states = of_critic ? critic_states_ : policy_states_;
    if (t == 0) return batch_["first_policy_state"];
    return states[t - 1] * ended_[t - 1].logical_not().unsqueeze(1);
  }
  // The state before step t where the memory runs with the current weights from `state` before step `from` on.
  torch::Tensor Burn(bool of_critic, int64_t from, int64_t t, torch::Tensor state) const {
    const torch::NoGradGuard no_grad;
    for (int64_t s = from; s < t; ++s) {
      if (s > from) state = state * ended_[s - 1].logical_not().unsqueeze(1);
      state = LiteralStep(of_critic ? network_.critic_memory() : network_.memory(),
                          of_critic ? critic_[s] : batch_["obs"][s], state);
    }
    return t > from ? state * ended_[t - 1].logical_not().unsqueeze(1) : state;
  }

 private:
  const ActorCritic& network_;
  const Batch& batch_;
  int64_t T_ = 0, M_ = 0;
  torch::Tensor ended_, critic_, final_critic_, state_, final_state_;
  std::vector<torch::Tensor> policy_states_, critic_states_;
};

// Updates by the book: autograd through a loop over steps, torch::optim::Adam, one minibatch of everything.
void LiteralUpdate(const v1::RunConfig& config, const Batch& batch, ActorCritic& network, torch::optim::Adam& adam,
                   RunningMoments& moments) {
  const v1::PpoConfig& ppo = config.ppo();
  const int64_t T = batch["reward"].size(0), M = batch["reward"].size(1);
  const int64_t L = ppo.sequence_length() > 0 ? ppo.sequence_length() : T, burn_in = ppo.burn_in();
  const bool stored = ppo.sequence_state() == v1::SEQUENCE_STATE_STORED;
  const torch::Tensor action = batch["action"].flatten(0, 1);
  const torch::Tensor active = batch.has("active") ? batch["active"] : torch::ones({T, M}, torch::kBool);
  const torch::Tensor rows = active.flatten().nonzero().squeeze(1);
  std::map<std::pair<bool, int64_t>, torch::Tensor> begins;  // (of the critic, step) -> state before it.
  for (uint32_t epoch = 0; epoch < ppo.epochs(); ++epoch) {
    Literal literal(network, batch);
    const double scale = std::sqrt(moments.variance().item<double>() + 1e-8);
    const auto [value, next] = literal.Values();
    const torch::Tensor reward =
        batch.has("active") ? CreditPosthumously(batch["reward"], batch["active"], ppo.gamma()) : batch["reward"];
    const AdvantageInput input{reward, value * scale, next * scale, batch["terminated"],
                               torch::logical_or(batch["terminated"], batch["truncated"])};
    for (int64_t t = L; t < T && (epoch == 0 || !stored); t += L) {
      for (const bool of_critic : {false, true}) {
        if (of_critic && !network.critic_memory().exists()) continue;
        begins[{of_critic, t}] = literal.StateBefore(of_critic, std::max<int64_t>(0, t - burn_in)).clone();
      }
    }
    const auto cut = [&](bool of_critic) {
      return [&, of_critic](int64_t t, const torch::Tensor& state) {
        if (t % L != 0 || t >= T) return state;
        return literal.Burn(of_critic, std::max<int64_t>(0, t - burn_in), t, begins.at({of_critic, t}));
      };
    };
    const auto [h, critic] = literal.Inputs(cut(false), cut(true));
    const auto [head, now] =
        network.PolicyHeadAndValue(h.narrow(0, 0, T).flatten(0, 1), critic.narrow(0, 0, T).flatten(0, 1));
    const torch::Tensor log_prob = LogProb(network, head, action);
    torch::Tensor advantage, returns;
    {
      const torch::NoGradGuard no_grad;
      if (config.sync().mode() == v1::SYNC_MODE_ASYNC) {
        const torch::Tensor whole = literal.Inputs({}, {}).first.narrow(0, 0, T).flatten(0, 1);
        const torch::Tensor ratio =
            (LogProb(network, network.PolicyHead(whole), action).view({T, M}) - batch["log_prob"])
                .masked_fill(active.logical_not(), 0);
        const VtraceTargets targets =
            Vtrace(input, ratio, {ppo.gamma(), ppo.gae_lambda(), ppo.vtrace_rho_max(), ppo.vtrace_c_max()});
        advantage = targets.advantage.flatten();
        returns = targets.target.flatten();
      } else {
        advantage = GeneralizedAdvantage(input, ppo.gamma(), ppo.gae_lambda()).flatten();
        returns = advantage + (value * scale).flatten();
      }
      moments.Update(returns.index_select(0, rows).unsqueeze(1));
      if (ppo.normalize_advantages()) {
        const torch::Tensor of_samples = advantage.index_select(0, rows);
        advantage = (advantage - of_samples.mean()) / (of_samples.std(/*unbiased=*/false) + 1e-8);
      }
    }
    const auto some = [&](const torch::Tensor& all) { return all.flatten().index_select(0, rows); };
    const torch::Tensor entropy = network.options().discrete ? CategoricalEntropy(head.index_select(0, rows))
                                                             : GaussianEntropy(network.log_std());
    adam.zero_grad();
    PpoLoss(some(log_prob), some(batch["log_prob"]), some(advantage), some(now), some(value), some(returns / scale),
            entropy, ppo)
        .total.backward();
    torch::nn::utils::clip_grad_norm_(network.parameters(), ppo.max_grad_norm());
    adam.step();
  }
}

v1::RunConfig RecurrentConfig() {
  v1::RunConfig config = SampleConfig();
  config.mutable_model()->set_normalize_observations(false);
  config.mutable_ppo()->set_minibatch_size(100000);
  config.mutable_ppo()->set_epochs(3);
  config.mutable_ppo()->set_adam_epsilon(1e-3);  // Or Adam's first steps blow up rounding of gradients near zero.
  return config;
}

void ExpectLiteralUpdates(const v1::RunConfig& config, const ActorCriticOptions& options, int64_t agents = 1) {
  torch::manual_seed(10);
  Ppo ppo(config, options, 5);
  ActorCritic network(options, 5);
  std::vector<torch::Tensor> parameters;
  for (const auto& [name, parameter] : network.AllParameters()) parameters.push_back(parameter);
  torch::optim::Adam adam(parameters, torch::optim::AdamOptions(config.ppo().lr()).eps(1e-3));
  RunningMoments moments(1);
  for (int iteration = 0; iteration < 2; ++iteration) {
    Batch batch = CollectRemembering(ppo, 13, 4, agents);
    ASSERT_GT(batch["final_index"].size(0), 0);
    batch["log_prob"] += 0.3 * torch::randn_like(batch["log_prob"]);
    Train(ppo, batch, 0, iteration);
    LiteralUpdate(config, batch, network, adam, moments);
  }
  for (const auto& [name, want] : network.AllParameters()) {
    EXPECT_TRUE(torch::allclose(Find(ppo.ModelState(), name), want, 1e-4, 1e-5)) << name;
  }
}

TEST(PpoRecurrent, UpdateEqualsTheLiteralAlgorithm) {
  for (const MemoryKind kind : kKinds) {
    for (const bool discrete : {false, true}) {
      SCOPED_TRACE(testing::Message() << (kind == MemoryKind::kGru ? "gru" : "lstm") << discrete);
      ExpectLiteralUpdates(RecurrentConfig(), MemoryNetwork(kind, discrete));
      ExpectLiteralUpdates(RecurrentConfig(), MemoryNetwork(kind, discrete, /*shared_trunk=*/true));
      ExpectLiteralUpdates(RecurrentConfig(), MemoryNetwork(kind, discrete, false, /*critic_memory=*/true));
    }
  }
}

TEST(PpoRecurrent, UpdateOfTeamsEqualsTheLiteralAlgorithm) {
  for (const MemoryKind kind : kKinds) {
    for (const bool critic_memory : {false, true}) {
      SCOPED_TRACE(testing::Message() << (kind == MemoryKind::kGru ? "gru" : "lstm") << critic_memory);
      ExpectLiteralUpdates(RecurrentConfig(), MemoryNetwork(kind, true, false, critic_memory, /*central=*/true), 3);
      ExpectLiteralUpdates(RecurrentConfig(), MemoryNetwork(kind, false, false, critic_memory), 2);
    }
  }
}

TEST(PpoRecurrent, AsyncUpdateEqualsTheLiteralAlgorithmWithVtrace) {
  v1::RunConfig config = RecurrentConfig();
  config.mutable_sync()->set_mode(v1::SYNC_MODE_ASYNC);
  config.mutable_ppo()->set_vtrace_rho_max(0.9);
  config.mutable_ppo()->set_vtrace_c_max(0.8);
  for (const MemoryKind kind : kKinds) {
    ExpectLiteralUpdates(config, MemoryNetwork(kind));
    ExpectLiteralUpdates(config, MemoryNetwork(kind, true, false, true, true), 3);
  }
}

// Five steps each of thirteen: the last sequence of a column has three.
TEST(PpoRecurrent, ShortSequencesEqualTheLiteralAlgorithm) {
  for (const MemoryKind kind : kKinds) {
    for (const bool stored : {false, true}) {
      for (const int burn_in : {0, 2, 7, 100}) {
        SCOPED_TRACE(testing::Message() << (kind == MemoryKind::kGru ? "gru " : "lstm ") << stored << burn_in);
        v1::RunConfig config = RecurrentConfig();
        config.mutable_ppo()->set_sequence_length(5);
        config.mutable_ppo()->set_burn_in(burn_in);
        config.mutable_ppo()->set_sequence_state(stored ? v1::SEQUENCE_STATE_STORED : v1::SEQUENCE_STATE_REBUILT);
        ExpectLiteralUpdates(config, MemoryNetwork(kind));
        ExpectLiteralUpdates(config, MemoryNetwork(kind, true, false, true, true), 3);
      }
    }
  }
}

// Sequences cannot be longer than what was collected: asking for longer ones changes no bit.
TEST(PpoRecurrent, LongerSequencesThanTheRowsChangeNothing) {
  for (const MemoryKind kind : kKinds) {
    std::vector<uint64_t> digests;
    for (const uint32_t length : {0, 12, 13, 4096}) {
      torch::manual_seed(3);
      v1::RunConfig config = RecurrentConfig();
      config.mutable_ppo()->set_minibatch_size(24);
      config.mutable_ppo()->set_sequence_length(length);
      Ppo ppo(config, MemoryNetwork(kind), 5);
      Train(ppo, CollectRemembering(ppo, 12, 6), 0, 0);
      digests.push_back(ppo.ParametersDigest());
    }
    EXPECT_EQ(digests, std::vector<uint64_t>(4, digests[0]));
  }
}

TEST(PpoRecurrent, MinibatchesAreWholeSequencesAndPassesToo) {
  torch::manual_seed(4);
  v1::RunConfig config = RecurrentConfig();
  config.mutable_ppo()->set_epochs(1);
  config.mutable_ppo()->set_minibatch_size(20);  // Two sequences of eight.
  config.mutable_ppo()->set_sequence_length(8);
  Ppo ppo(config, MemoryNetwork(MemoryKind::kGru), 5);
  const Batch batch = CollectRemembering(ppo, 16, 5);
  EXPECT_EQ(Train(ppo, batch, 0, 0).at("gradient_steps"), 5);

  // Gradients of a minibatch's parts add up.
  config.mutable_ppo()->set_minibatch_size(100000);
  Ppo whole(config, MemoryNetwork(MemoryKind::kGru), 5);
  config.mutable_learner()->set_micro_batch_size(17);
  Ppo parts(config, MemoryNetwork(MemoryKind::kGru), 5);
  std::vector<int64_t> sizes;
  parts.steps().SetMemoryProbe([&](int64_t samples) { sizes.push_back(samples); });
  Train(whole, batch, 0, 0);
  Train(parts, batch, 0, 0);
  EXPECT_EQ(sizes, (std::vector<int64_t>{16, 16, 16, 16, 16}));  // Two sequences each.
  EXPECT_LT(LargestDifference(parts.ModelState(), whole.ModelState()), 1e-5);
}

// What fills up sequences, and agents that are gone, are in no mean.
TEST(PpoRecurrent, AdvantagesAreNormalisedOverTheSamplesOfAMinibatch) {
  v1::RunConfig config = RecurrentConfig();
  config.mutable_ppo()->set_normalize_advantages(true);
  config.mutable_ppo()->set_sequence_length(5);
  ExpectLiteralUpdates(config, MemoryNetwork(MemoryKind::kGru, true), 3);
  ExpectLiteralUpdates(config, MemoryNetwork(MemoryKind::kLstm));
}

TEST(PpoRecurrent, RanksTogetherComputeWhatOneComputes) {
  for (const MemoryKind kind : kKinds) {
    for (const int64_t agents : {1, 3}) {
      for (const int64_t first : {0, 2, 4}) {  // Environments of the first rank.
        torch::manual_seed(6);
        v1::RunConfig config = RecurrentConfig();
        config.mutable_ppo()->set_minibatch_size(30);
        config.mutable_ppo()->set_sequence_length(5);
        config.mutable_ppo()->set_normalize_advantages(true);
        config.mutable_model()->set_normalize_observations(true);
        const ActorCriticOptions network = MemoryNetwork(kind, true, false, agents > 1, agents > 1);
        Ppo alone(config, network, 5);
        constexpr int kUpdates = 4;
        std::vector<Batch> batches;
        std::vector<UpdateStats> wanted;
        std::vector<std::vector<std::pair<std::string, torch::Tensor>>> states;
        for (int i = 0; i < kUpdates; ++i) {
          batches.push_back(CollectRemembering(alone, 13, 6, agents));
          wanted.push_back(Train(alone, batches.back(), 0, i));
          states.push_back(alone.ModelState());
          for (auto& [name, tensor] : states.back()) tensor = tensor.detach().clone();
        }
        std::vector<uint64_t> digests[2];
        RunRanks(2, [&](Collective* collective) {
          Ppo ppo(config, network, 5, collective);
          for (int i = 0; i < kUpdates; ++i) {
            const int64_t begin = collective->rank() == 0 ? 0 : first, end = collective->rank() == 0 ? first : 6;
            const auto stats = ppo.Update(ColumnsOf(batches[i], begin * agents, (end - begin) * agents), 0, i);
            ASSERT_TRUE(stats.ok()) << stats.status();
            digests[collective->rank()].push_back(ppo.ParametersDigest());
            // One rank's but for rounding, which Adam makes larger where a gradient is nearly 0.
            EXPECT_LT(LargestDifference(ppo.ModelState(), states[i]), 1e-4) << "update " << i;
            for (const auto& [name, value] : wanted[i]) {
              EXPECT_NEAR(stats->at(name), value, 1e-3 * std::max(1.0, std::abs(value))) << name << ", update " << i;
            }
          }
        });
        EXPECT_EQ(digests[0].size(), kUpdates);
        EXPECT_EQ(digests[1], digests[0]) << "the ranks' own are equal to the bit";
      }
    }
  }
}

}  // namespace
}  // namespace skein
