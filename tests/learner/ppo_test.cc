// SPDX-License-Identifier: Apache-2.0
#include "learner/algorithm/ppo/ppo.h"

#include <gtest/gtest.h>
#include <torch/nn/utils/clip_grad.h>
#include <torch/optim/adam.h>
#include <torch/types.h>
#include <torch/utils.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/number/number_bounds.h"
#include "learner/algorithm/ppo/ppo_loss.h"
#include "learner/algorithm/returns/advantage.h"
#include "learner/algorithm/returns/vtrace.h"
#include "learner/network/distribution.h"
#include "tests/learner/ppo_sample.h"

namespace skein {
namespace {

// One iteration by the book: autograd, torch::optim::Adam, one minibatch of everything.
void LiteralUpdate(const v1::RunConfig& config, const Batch& batch, int epochs, ActorCritic& network,
                   torch::optim::Adam& adam, RunningMoments& return_moments) {
  const v1::PpoConfig& ppo = config.ppo();
  const int64_t steps = batch["reward"].size(0), columns = batch["reward"].size(1), size = steps * columns;
  const torch::Tensor obs = batch["obs"].narrow(0, 0, steps).reshape({size, -1}),
                      next = batch["obs"].narrow(0, 1, steps).reshape({size, -1});
  const bool discrete = network.options().discrete;
  const torch::Tensor action = discrete ? batch["action"].flatten() : batch["action"].reshape({size, -1});
  for (int epoch = 0; epoch < epochs; ++epoch) {
    torch::Tensor advantage, target;
    {
      const torch::NoGradGuard no_grad;
      const double scale = std::sqrt(return_moments.variance().item<double>() + 1e-8);
      const torch::Tensor value = network.Value(obs) * scale;
      torch::Tensor next_value = network.Value(next) * scale;
      for (int64_t k = 0; k < batch["final_index"].size(0); ++k) {
        next_value[batch["final_index"][k].item<int64_t>()] =
            network.Value(batch["final_obs"].narrow(0, k, 1))[0] * scale;
      }
      const AdvantageInput input{batch["reward"], value.view({steps, columns}), next_value.view({steps, columns}),
                                 batch["terminated"], torch::logical_or(batch["terminated"], batch["truncated"])};
      torch::Tensor returns;
      if (config.sync().mode() == v1::SYNC_MODE_ASYNC) {
        const torch::Tensor log_ratio =
            LogProb(network, network.PolicyHead(obs), action).view({steps, columns}) - batch["log_prob"];
        const VtraceTargets targets = Vtrace(input, log_ratio, {ppo.gamma(), ppo.gae_lambda(), 0.9, 0.8});
        advantage = targets.advantage.flatten();
        returns = targets.target.flatten();
      } else {
        advantage = GeneralizedAdvantage(input, ppo.gamma(), ppo.gae_lambda()).flatten();
        returns = advantage + value;
      }
      target = returns / scale;
      return_moments.Update(returns.view({size, 1}));
    }
    adam.zero_grad();
    const auto [head, value] = network.PolicyHeadAndValue(obs, obs);
    const torch::Tensor entropy = discrete ? CategoricalEntropy(head) : GaussianEntropy(network.log_std());
    PpoLoss(LogProb(network, head, action), batch["log_prob"].flatten(), advantage, value, value, target, entropy, ppo)
        .total.backward();
    torch::nn::utils::clip_grad_norm_(network.parameters(), ppo.max_grad_norm());
    adam.step();
  }
}

void ExpectLiteralUpdates(v1::RunConfig config, const ActorCriticOptions& options) {
  torch::manual_seed(10);
  config.mutable_model()->set_normalize_observations(false);
  config.mutable_ppo()->set_minibatch_size(1000);
  config.mutable_ppo()->set_epochs(3);
  config.mutable_ppo()->set_adam_epsilon(1e-3);  // Or Adam's first steps blow up rounding of gradients near zero.
  Ppo ppo(config, options, 5);
  ActorCritic network(options, 5);
  std::vector<torch::Tensor> parameters;
  for (const auto& [name, parameter] : network.AllParameters()) parameters.push_back(parameter);
  torch::optim::Adam adam(parameters, torch::optim::AdamOptions(config.ppo().lr()).eps(1e-3));
  RunningMoments return_moments(1);
  for (int iteration = 0; iteration < 3; ++iteration) {
    Batch batch = CollectEpisodes(ppo, 12, 4);
    ASSERT_GT(batch["final_index"].size(0), 0);
    if (config.sync().mode() == v1::SYNC_MODE_ASYNC) batch["log_prob"] += 0.5 * torch::randn({12, 4});
    Train(ppo, batch, 0, iteration);
    LiteralUpdate(config, batch, 3, network, adam, return_moments);
  }
  for (const auto& [name, want] : network.AllParameters()) {
    EXPECT_TRUE(torch::allclose(Find(ppo.ModelState(), name), want, 1e-4, 1e-5)) << name;
  }
  EXPECT_NEAR(Find(ppo.ModelState(), "return_normalizer.variance").item<double>(),
              return_moments.variance().item<double>(), 1e-4);
}

TEST(Ppo, UpdateEqualsTheLiteralAlgorithm) {
  for (const bool discrete : {false, true}) {
    for (const bool shared_trunk : {false, true}) {
      ActorCriticOptions options = SampleNetwork(discrete, shared_trunk);
      ExpectLiteralUpdates(SampleConfig(), options);
      options.hidden = {520};  // Too wide for FusedGradient: autograd.
      ExpectLiteralUpdates(SampleConfig(), options);
    }
  }
}

TEST(Ppo, AsyncUpdateEqualsTheLiteralAlgorithmWithVtrace) {
  v1::RunConfig config = SampleConfig();
  config.mutable_sync()->set_mode(v1::SYNC_MODE_ASYNC);
  config.mutable_ppo()->set_vtrace_rho_max(0.9);
  config.mutable_ppo()->set_vtrace_c_max(0.8);
  for (const bool discrete : {false, true}) {
    ActorCriticOptions options = SampleNetwork(discrete);
    ExpectLiteralUpdates(config, options);
    options.hidden = {520};
    ExpectLiteralUpdates(config, options);
  }
}

TEST(Ppo, AsyncTellsHowFarTheDataAreFromThePolicy) {
  torch::manual_seed(26);
  v1::RunConfig config = SampleConfig();
  Ppo synchronous(config, SampleNetwork(), 1);
  EXPECT_EQ(Train(synchronous, CollectFrom(synchronous, 8, 4), 0, 0).Get("vtrace_rho", -1), -1);
  config.mutable_sync()->set_mode(v1::SYNC_MODE_ASYNC);
  config.mutable_ppo()->set_vtrace_rho_max(1);
  config.mutable_ppo()->set_vtrace_c_max(1);
  Ppo ppo(config, SampleNetwork(), 1);
  Batch batch = CollectFrom(ppo, 8, 4);
  Ppo other(config, SampleNetwork(), 1);
  EXPECT_NEAR(Train(other, batch, 0, 0).at("vtrace_rho"), 1, 1e-5);
  batch["log_prob"] += std::log(4.0f);  // Every ratio is 1/4.
  EXPECT_NEAR(Train(ppo, batch, 0, 0).at("vtrace_rho"), 0.25, 1e-5);
}

// Mean and deviation of a minibatch are its own: with one minibatch, scaling and shifting advantages changes nothing.
TEST(Ppo, NormalisesAdvantagesInEachMinibatch) {
  torch::manual_seed(27);
  v1::RunConfig config = SampleConfig();
  config.mutable_ppo()->set_normalize_advantages(true);
  config.mutable_ppo()->set_value_coefficient(0);
  config.mutable_ppo()->set_max_grad_norm(0);
  config.mutable_ppo()->set_epochs(1);
  config.mutable_ppo()->set_minibatch_size(32);
  Ppo a(config, SampleNetwork(), 1), b(config, SampleNetwork(), 1);
  Batch batch = CollectFrom(a, 8, 4);
  batch["terminated"].fill_(true);  // An advantage is reward - value; no value is larger than a few.
  batch["reward"] *= 1000;
  Train(a, batch, 0, 0);
  batch["reward"] = batch["reward"] * 2 + 500;
  Train(b, batch, 0, 0);
  EXPECT_TRUE(torch::allclose(a.ModelState()[0].second, b.ModelState()[0].second, 1e-3, 1e-4));
}

// Reward for actions near a target: the policy should move there.
TEST(Ppo, ImprovesContinuousBandit) {
  for (const bool shared_trunk : {false, true}) {
    torch::manual_seed(11);
    v1::RunConfig config = SampleConfig();
    config.mutable_ppo()->set_minibatch_size(32);
    config.mutable_ppo()->set_epochs(4);
    config.mutable_ppo()->set_lr(1e-2);
    Ppo ppo(config, SampleNetwork(false, shared_trunk), 1);
    double first = 0, last = 0;
    for (int iteration = 0; iteration < 40; ++iteration) {
      Batch batch = CollectFrom(ppo, 8, 16);
      batch["reward"] = -(batch["action"] - torch::tensor({1.0f, -1.0f})).square().sum(2);
      batch["terminated"].fill_(true);
      last = batch["reward"].mean().item<double>();
      if (iteration == 0) first = last;
      EXPECT_EQ(Train(ppo, batch, 0, iteration).at("skipped_steps"), 0);
    }
    // At first 2 (1 + exp(-1)) = 2.7; a perfect mean at the first deviation leaves 0.74.
    EXPECT_LT(first, -2);
    EXPECT_GT(last, -0.9) << "shared_trunk " << shared_trunk;
  }
}

// Each action pays where the first observation has its sign: the policy must look at the observation.
TEST(Ppo, ImprovesDiscreteContextualBandit) {
  torch::manual_seed(12);
  v1::RunConfig config = SampleConfig();
  config.mutable_ppo()->set_minibatch_size(32);
  config.mutable_ppo()->set_epochs(4);
  config.mutable_ppo()->set_lr(1e-2);
  config.mutable_ppo()->set_normalize_advantages(true);
  config.mutable_ppo()->set_entropy_coefficient(0.001);
  Ppo ppo(config, SampleNetwork(true), 1);
  double last = 0;
  for (int iteration = 0; iteration < 40; ++iteration) {
    Batch batch = CollectFrom(ppo, 8, 16);
    const torch::Tensor want = (batch["obs"].narrow(0, 0, 8).select(2, 0) > 1).to(torch::kInt64);
    batch["reward"] = batch["action"].eq(want).to(torch::kFloat32);
    batch["terminated"].fill_(true);
    last = batch["reward"].mean().item<double>();
    Train(ppo, batch, 0, iteration);
  }
  EXPECT_GT(last, 0.85);  // 0.5 at first.
}

TEST(Ppo, ReturnOfATruncatedEpisodeHasTheFinalObservationsValue) {
  torch::manual_seed(13);
  v1::RunConfig config = SampleConfig();
  config.mutable_ppo()->set_epochs(1);
  for (const bool truncated : {true, false}) {
    Ppo ppo(config, SampleNetwork(), 1);
    Batch batch = CollectFrom(ppo, 1, 1);
    batch["reward"].fill_(2);
    batch["terminated"].fill_(!truncated);
    batch["truncated"].fill_(truncated);
    if (truncated) {
      batch["final_obs"] = torch::tensor({{0.5f, -0.5f, 1.0f}});
      batch["final_index"] = torch::zeros({1}, torch::kInt64);
    }
    const double final_value = ActorCritic(ppo.network()).Value(torch::tensor({{0.5f, -0.5f, 1.0f}})).item<double>();
    ASSERT_GT(std::abs(final_value), 1e-3);
    Train(ppo, batch, 0, 0);
    // The only return: 2 + 0.9 V(final), or 2 where the episode terminated. Statistics start at variance 1.
    EXPECT_NEAR(Find(ppo.ModelState(), "return_normalizer.mean").item<double>(),
                truncated ? 2 + 0.9 * final_value : 2.0, 1e-6);
  }
}

TEST(Ppo, LastMinibatchTakesTheRemainder) {
  torch::manual_seed(16);
  v1::RunConfig config = SampleConfig();
  Ppo ppo(config, SampleNetwork(), 1);
  // 21 samples in minibatches of 8: 8 and 13, twice.
  EXPECT_EQ(Train(ppo, CollectFrom(ppo, 7, 3), 0, 0).at("gradient_steps"), 4);
  // 6 samples, fewer than one minibatch: one of 6, twice.
  EXPECT_EQ(Train(ppo, CollectFrom(ppo, 2, 3), 0, 1).at("gradient_steps"), 4 / 2);
}

TEST(Ppo, IterationKeysTheMinibatchOrder) {
  torch::manual_seed(17);
  Ppo a(SampleConfig(), SampleNetwork(), 1), b(SampleConfig(), SampleNetwork(), 1),
      c(SampleConfig(), SampleNetwork(), 1);
  const Batch batch = CollectFrom(a, 8, 4);
  Train(a, batch, 0, 5);
  Train(b, batch, 0, 5);
  Train(c, batch, 0, 6);
  ExpectEqualStates(a, b);
  EXPECT_FALSE(torch::equal(a.ModelState()[0].second, c.ModelState()[0].second));
}

TEST(Ppo, ObservationStatisticsTakeTheBatchInAfterwards) {
  torch::manual_seed(18);
  Ppo ppo(SampleConfig(), SampleNetwork(), 1);
  const Batch batch = CollectFrom(ppo, 8, 4);
  EXPECT_EQ(ppo.acting().obs_scale.mean.abs().sum().item<float>(), 0);
  Train(ppo, batch, 0, 0);
  // Of obs[0..T-1]: the last row comes again as the first of the next batch.
  const torch::Tensor rows = batch["obs"].narrow(0, 0, 8).reshape({32, 3});
  EXPECT_TRUE(torch::allclose(ppo.acting().obs_scale.mean, rows.mean(0), 1e-4, 1e-5));
  EXPECT_TRUE(torch::allclose(ppo.acting().obs_scale.inv_std, 1 / rows.std(0, false), 1e-4, 1e-5));
  EXPECT_EQ(Find(ppo.ModelState(), "obs_normalizer.count").item<double>(), 32);
}

// Mean and variance are those of `first`, and of `second` clipped to ten deviations (or 10) about the mean of `first`.
void ExpectClippedMoments(const Ppo& ppo, const std::string& name, const torch::Tensor& first,
                          const torch::Tensor& second) {
  const int64_t n = first.size(0), all = n + second.size(0);
  EXPECT_EQ(Find(ppo.ModelState(), name + ".count").item<double>(), static_cast<double>(all));
  for (int64_t j = 0; j < first.size(1); ++j) {
    std::vector<double> numbers(all);
    double mean = 0, squares = 0;
    for (int64_t i = 0; i < n; ++i) mean += (numbers[i] = first[i][j].item<double>()) / n;
    for (int64_t i = 0; i < n; ++i) squares += std::pow(numbers[i] - mean, 2);
    const double reach = std::max(10 * std::sqrt(squares / n), 10.0);
    for (int64_t i = n; i < all; ++i) {
      numbers[i] = std::min(std::max(second[i - n][j].item<double>(), mean - reach), mean + reach);
    }
    mean = squares = 0;
    for (const double number : numbers) mean += number / all;
    for (const double number : numbers) squares += std::pow(number - mean, 2);
    EXPECT_NEAR(Find(ppo.ModelState(), name + ".mean")[j].item<double>(), mean, 1e-5) << name << " " << j;
    EXPECT_NEAR(Find(ppo.ModelState(), name + ".variance")[j].item<double>(), squares / all, 1e-5 * squares)
        << name << " " << j;
  }
}

TEST(Ppo, StatisticsTakeInAbsurdRowsForNoMoreThanTheirShare) {
  torch::manual_seed(27);
  v1::RunConfig config = SampleConfig();
  config.mutable_ppo()->set_epochs(1);
  config.mutable_ppo()->set_gamma(0);  // A return is a reward.
  Ppo ppo(config, CentralNetwork(), 1);
  const auto batch = [&ppo] {
    Batch teams = CollectTeams(ppo, 16, 4, 2);
    teams["active"].fill_(true);
    teams["terminated"].fill_(false);
    teams["obs"].select(2, 2).fill_(0.25);  // Has never varied,
    return teams;
  };
  const Batch first = batch();
  Train(ppo, first, 0, 0);
  Batch second = batch();
  // One fragment of eight is a lie.
  second["obs"].select(1, 5).fill_(kNumberBound);
  second["state"].select(1, 1).fill_(-kNumberBound);
  second["reward"].select(1, 5).fill_(-kNumberBound);
  second["obs"].select(1, 0).select(1, 2).fill_(1);  // and now does.
  Train(ppo, second, 0, 1);
  const auto rows = [](const torch::Tensor& numbers) {
    return numbers.narrow(0, 0, 16).reshape({-1, numbers.dim() == 3 ? numbers.size(2) : 1});
  };
  ExpectClippedMoments(ppo, "obs_normalizer", rows(first["obs"]), rows(second["obs"]));
  ExpectClippedMoments(ppo, "state_normalizer", rows(first["state"]), rows(second["state"]));
  ExpectClippedMoments(ppo, "return_normalizer", rows(first["reward"]), rows(second["reward"]));
}

TEST(Ppo, NormalisersCanBeOff) {
  torch::manual_seed(19);
  v1::RunConfig config = SampleConfig();
  config.mutable_model()->set_normalize_observations(false);
  config.mutable_model()->set_normalize_returns(false);
  Ppo ppo(config, SampleNetwork(), 1);
  Train(ppo, CollectFrom(ppo, 8, 4), 0, 0);
  EXPECT_TRUE(torch::equal(ppo.acting().obs_scale.mean, torch::zeros({3})));
  EXPECT_TRUE(torch::equal(ppo.acting().obs_scale.inv_std, torch::ones({3})));
  EXPECT_EQ(Find(ppo.ModelState(), "obs_normalizer.count").item<double>(), 0);
  EXPECT_EQ(Find(ppo.ModelState(), "return_normalizer.count").item<double>(), 0);
}

TEST(Ppo, ReturnStatisticsGrowAtEachRecomputation) {
  torch::manual_seed(20);
  v1::RunConfig config = SampleConfig();
  for (const bool recompute : {true, false}) {
    config.mutable_ppo()->set_recompute_advantages(recompute);
    Ppo ppo(config, SampleNetwork(), 1);
    Train(ppo, CollectFrom(ppo, 8, 4), 0, 0);
    // 32 samples, 2 epochs.
    EXPECT_EQ(Find(ppo.ModelState(), "return_normalizer.count").item<double>(), recompute ? 64 : 32);
  }
}

TEST(Ppo, WatchesOnlyStatisticsThatItHas) {
  torch::manual_seed(22);
  Ppo ppo(SampleConfig(), SampleNetwork(), 1);
  const UpdateStats stats = Train(ppo, CollectFrom(ppo, 8, 4), 0, 0);
  EXPECT_EQ(ppo.WatchRules().size(), 4u);
  for (const WatchRule& rule : ppo.WatchRules()) EXPECT_NO_THROW(stats.at(rule.stat)) << rule.stat;
}

TEST(Ppo, SkipsMinibatchesThatAreNotFinite) {
  torch::manual_seed(21);
  Ppo ppo(SampleConfig(), SampleNetwork(), 1), untouched(SampleConfig(), SampleNetwork(), 1);
  Batch batch = CollectFrom(ppo, 8, 4);
  batch["reward"].fill_(std::numeric_limits<float>::quiet_NaN());
  const UpdateStats stats = Train(ppo, batch, 0, 0);
  // 32 samples in minibatches of 8, 2 epochs.
  EXPECT_EQ(stats.at("skipped_steps"), 8);
  EXPECT_EQ(stats.at("gradient_steps"), 0);
  for (const auto& [name, value] : stats) EXPECT_TRUE(std::isfinite(value)) << name;
  const auto got = ppo.ModelState(), want = untouched.ModelState();
  for (size_t i = 0; i < got.size(); ++i) {
    if (got[i].first.find("obs_normalizer") == 0) continue;  // The observations were finite.
    EXPECT_TRUE(torch::equal(got[i].second, want[i].second)) << got[i].first;
  }
}

TEST(Ppo, SkipsOnlyTheMinibatchThatHoldsTheBadSample) {
  torch::manual_seed(22);
  v1::RunConfig config = SampleConfig();
  config.mutable_ppo()->set_epochs(1);
  Ppo ppo(config, SampleNetwork(), 1);
  Batch batch = CollectFrom(ppo, 8, 4);
  batch["log_prob"][3][2] = std::numeric_limits<float>::quiet_NaN();
  const UpdateStats stats = Train(ppo, batch, 0, 0);
  EXPECT_EQ(stats.at("skipped_steps"), 1);
  EXPECT_EQ(stats.at("gradient_steps"), 3);
}

TEST(Ppo, SchedulesTheLearningRate) {
  torch::manual_seed(23);
  v1::RunConfig config = SampleConfig();
  Ppo constant(config, SampleNetwork(), 1);
  EXPECT_EQ(Train(constant, CollectFrom(constant, 4, 4), 0.75, 0).at("lr"), 3e-3);
  config.mutable_ppo()->set_lr_schedule(v1::LEARNING_RATE_SCHEDULE_LINEAR);
  Ppo linear(config, SampleNetwork(), 1);
  EXPECT_DOUBLE_EQ(Train(linear, CollectFrom(linear, 4, 4), 0.75, 0).at("lr"), 7.5e-4);  // 3e-3 * (1 - 0.75)
  EXPECT_EQ(Train(linear, CollectFrom(linear, 4, 4), 1.25, 1).at("lr"), 0);              // Past the end.
  config.mutable_ppo()->set_lr_schedule(v1::LEARNING_RATE_SCHEDULE_KL_ADAPTIVE);
  config.mutable_ppo()->set_kl_target(50);  // So far away that the rate must grow.
  Ppo adaptive(config, SampleNetwork(), 1);
  EXPECT_EQ(Train(adaptive, CollectFrom(adaptive, 4, 4), 0, 0).at("lr"), 3e-3);
  EXPECT_DOUBLE_EQ(Train(adaptive, CollectFrom(adaptive, 4, 4), 0, 1).at("lr"), 4.5e-3);
  EXPECT_DOUBLE_EQ(Find(adaptive.OptimizerState(), "lr").item<double>(), 6.75e-3);
}

TEST(AdaptLearningRate, KeepsKlBetweenHalfAndTwiceTheTarget) {
  EXPECT_DOUBLE_EQ(AdaptLearningRate(3e-4, 0.021, 0.01), 2e-4);
  EXPECT_DOUBLE_EQ(AdaptLearningRate(3e-4, 0.004, 0.01), 4.5e-4);
  EXPECT_EQ(AdaptLearningRate(3e-4, 0.02, 0.01), 3e-4);
  EXPECT_EQ(AdaptLearningRate(3e-4, 0.005, 0.01), 3e-4);
  EXPECT_EQ(AdaptLearningRate(1.1e-6, 1, 0.01), 1e-6);
  EXPECT_EQ(AdaptLearningRate(9e-3, 0, 0.01), 1e-2);
}

TEST(Ppo, KlStopEndsTheEpochs) {
  torch::manual_seed(24);
  v1::RunConfig config = SampleConfig();
  config.mutable_ppo()->set_epochs(10);
  config.mutable_ppo()->set_lr(0.05);
  config.mutable_ppo()->set_kl_stop(0.001);
  Ppo ppo(config, SampleNetwork(), 1);
  const UpdateStats stats = Train(ppo, CollectFrom(ppo, 16, 4), 0, 0);
  EXPECT_GE(stats.at("epochs"), 1);
  EXPECT_LT(stats.at("epochs"), 10);
  EXPECT_EQ(stats.at("gradient_steps"), 8 * stats.at("epochs"));  // 64 / 8 each
}

TEST(Ppo, ReportsPlausibleFigures) {
  torch::manual_seed(25);
  Ppo ppo(SampleConfig(), SampleNetwork(), 1);
  const UpdateStats stats = Train(ppo, CollectEpisodes(ppo, 8, 6), 0, 0);
  EXPECT_GE(stats.at("kl"), 0);
  EXPECT_GE(stats.at("clip_fraction"), 0);
  EXPECT_LE(stats.at("clip_fraction"), 1);
  EXPECT_GT(stats.at("grad_norm"), 0);
  EXPECT_GT(stats.at("value_loss"), 0);
  EXPECT_LE(stats.at("explained_variance"), 1);
  // Two dimensions at the initial deviation exp(-0.5): 2 * (-0.5 + 1.4189) = 1.84, and little has changed yet.
  EXPECT_NEAR(stats.at("entropy"), 1.84, 0.1);
}

}  // namespace
}  // namespace skein
