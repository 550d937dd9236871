// SPDX-License-Identifier: Apache-2.0
#include "learner/algorithm/directions/direction_search.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/types.h>
#include <torch/utils.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <random>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "base/config/config.h"
#include "base/number/exact_moments.h"
#include "learner/algorithm/ars/ars.h"
#include "learner/algorithm/es/es.h"
#include "spdlog/sinks/ostream_sink.h"
#include "spdlog/spdlog.h"

namespace skein {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// What is logged while it lives.
class Logged {
 public:
  Logged() {
    spdlog::set_default_logger(
        std::make_shared<spdlog::logger>("test", std::make_shared<spdlog::sinks::ostream_sink_mt>(said_)));
  }
  ~Logged() { spdlog::set_default_logger(before_); }
  std::string text() const { return said_.str(); }

 private:
  std::ostringstream said_;
  const std::shared_ptr<spdlog::logger> before_ = spdlog::default_logger();
};

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

v1::RunConfig Config(bool ars, bool linear = true) {
  v1::RunConfig config;
  ars ? (void)config.mutable_ars() : (void)config.mutable_es();
  if (linear) config.mutable_model()->set_policy(v1::POLICY_KIND_LINEAR);
  config.mutable_model()->add_hidden(4);
  config.mutable_directions()->set_num_envs(2);
  config.mutable_directions()->set_reward_shift(0.5);
  config.set_seed(9);
  ApplyDefaults(&config);
  return config;
}

ActorCriticOptions Network(const v1::RunConfig& config) {
  EnvSpec spec;
  spec.obs_size = 3;
  spec.action_size = 2;
  return MakeActorCriticOptions(config.model(), spec);
}

std::unique_ptr<DirectionSearch> MakeSearch(const v1::RunConfig& config) {
  if (config.has_ars()) return std::make_unique<Ars>(config, Network(config));
  return std::make_unique<Es>(config, Network(config));
}

torch::Tensor Doubles(const std::vector<double>& values) {
  return torch::from_blob(const_cast<double*>(values.data()), {static_cast<int64_t>(values.size())}, torch::kFloat64)
      .clone();
}

// Sums of two episodes of `steps` steps in all for each direction and sign.
Batch Directions(const std::vector<double>& plus, const std::vector<double>& minus, int64_t steps = 10) {
  const auto count = static_cast<int64_t>(plus.size());
  Batch batch;
  batch["return_plus"] = Doubles(plus);
  batch["return_minus"] = Doubles(minus);
  batch["steps_plus"] = torch::full({count}, steps, torch::kInt64);
  batch["steps_minus"] = torch::full({count}, steps, torch::kInt64);
  return batch;
}

// Each direction and sign has its own number of steps.
Batch RandomDirections(int count, int seed) {
  std::mt19937 random(seed);
  std::normal_distribution<double> normal(100, 30);
  std::uniform_int_distribution<int64_t> uniform(2, 200);
  std::vector<double> plus(count), minus(count);
  for (int i = 0; i < count; ++i) plus[i] = normal(random), minus[i] = normal(random);
  Batch batch = Directions(plus, minus);
  for (const char* field : {"steps_plus", "steps_minus"}) {
    for (int i = 0; i < count; ++i) batch[field].data_ptr<int64_t>()[i] = uniform(random);
  }
  return batch;
}

// Of two episodes: the mean return less half a point a step.
double ReturnOf(const Batch& batch, const std::string& sign, int64_t direction) {
  const double sum = batch["return_" + sign][direction].item<double>();
  return (sum - 0.5 * static_cast<double>(batch["steps_" + sign][direction].item<int64_t>())) / 2;
}

std::vector<double> Noise(uint64_t iteration, uint64_t index, size_t size) {
  RandomStream stream(9, RandomPurpose::kDirection, iteration, index);
  std::vector<double> noise(size);
  for (double& element : noise) element = stream.Normal();
  return noise;
}

void ExpectNear(const std::vector<double>& got, const std::vector<double>& want) {
  ASSERT_EQ(got.size(), want.size());
  for (size_t i = 0; i < got.size(); ++i) EXPECT_NEAR(got[i], want[i], 1e-6 * (1 + std::abs(want[i]))) << i;
}

// Mania et al. 2018, algorithm 2, line by line.
std::vector<double> ArsOracle(std::vector<double> parameters, const Batch& batch, size_t top, double alpha,
                              uint64_t iteration) {
  const int64_t n = batch["return_plus"].numel();
  std::vector<std::pair<double, int64_t>> sorted;
  std::vector<double> plus, minus;
  for (int64_t k = 0; k < n; ++k) {
    plus.push_back(ReturnOf(batch, "plus", k));
    minus.push_back(ReturnOf(batch, "minus", k));
    sorted.emplace_back(-std::max(plus[k], minus[k]), k);
  }
  std::sort(sorted.begin(), sorted.end());
  sorted.resize(top);
  std::vector<double> used;
  for (const auto& [key, k] : sorted) used.insert(used.end(), {plus[k], minus[k]});
  double mean = 0, variance = 0;
  for (const double r : used) mean += r / used.size();
  for (const double r : used) variance += (r - mean) * (r - mean) / used.size();
  for (const auto& [key, k] : sorted) {
    const std::vector<double> delta = Noise(iteration, k, parameters.size());
    for (size_t i = 0; i < parameters.size(); ++i) {
      parameters[i] += alpha / (top * std::sqrt(variance)) * (plus[k] - minus[k]) * delta[i];
    }
  }
  return parameters;
}

TEST(Ars, AStepEqualsTheLiteralOracle) {
  for (const bool linear : {true, false}) {
    for (const uint32_t top : {0u, 3u, 1u}) {
      v1::RunConfig config = Config(true, linear);
      config.mutable_ars()->set_top_dirs(top);
      Ars ars(config, Network(config));
      EXPECT_EQ(ars.Parameters().size(), linear ? 6u : 3 * 4 + 4 + 4 * 2 + 2);
      for (const uint64_t iteration : {0u, 1u}) {
        const Batch batch = RandomDirections(8, 3 + static_cast<int>(iteration));
        const std::vector<double> want = ArsOracle(ars.Parameters(), batch, top == 0 ? 8 : top, 0.02, iteration);
        ASSERT_TRUE(ars.Update(batch, 0, iteration).ok());
        ExpectNear(ars.Parameters(), want);
      }
    }
  }
}

TEST(Ars, ALinearPolicyBeginsAtZero) {
  EXPECT_THAT(MakeSearch(Config(true))->Parameters(), ElementsAre(0, 0, 0, 0, 0, 0));
}

TEST(Ars, TakesTheBestOfEitherSignAndTheFirstOfEqualOnes) {
  const std::vector<DirectionReturn> returns = {{0, 1, 2}, {1, 5, 0}, {2, 2, 1}, {3, -4, 7}};
  EXPECT_THAT(BestDirections(returns, 0), ElementsAre(0, 1, 2, 3));
  EXPECT_THAT(BestDirections(returns, 2), ElementsAre(1, 3));
  EXPECT_THAT(BestDirections(returns, 3), ElementsAre(0, 1, 3));
  EXPECT_THAT(BestDirections(returns, 9), ElementsAre(0, 1, 2, 3));
}

TEST(Ars, EqualReturnsChangeNothing) {
  Ars ars(Config(true), Network(Config(true)));
  ASSERT_TRUE(ars.Update(Directions({4, 4}, {4, 4}), 0, 0).ok());
  EXPECT_THAT(ars.Parameters(), ElementsAre(0, 0, 0, 0, 0, 0));
}

// Salimans et al. 2017, algorithm 2 with ranks, and Kingma and Ba 2015, algorithm 1.
void ExpectEsOracle(v1::Schedule noise) {
  v1::RunConfig config = Config(false, false);
  config.mutable_directions()->set_noise_schedule(noise);
  config.mutable_es()->set_weight_decay(0.1);
  Es es(config, Network(config));
  std::vector<double> theta = es.Parameters(), m(theta.size()), v(theta.size());
  for (int t = 1; t <= 3; ++t) {
    const double progress = noise == v1::SCHEDULE_LINEAR ? 0.25 * t : 0;  // The noise is less by as much.
    const double noise_std = 0.03 * (1 - progress);
    const Batch batch = RandomDirections(5, t);
    std::vector<double> all;
    for (int64_t k = 0; k < 5; ++k) {
      all.push_back(ReturnOf(batch, "plus", k));
      all.push_back(ReturnOf(batch, "minus", k));
    }
    std::vector<double> gradient(theta.size());
    for (int64_t k = 0; k < 5; ++k) {
      const auto utility = [&](double value) {
        return std::count_if(all.begin(), all.end(), [&](double other) { return other < value; }) / 9.0 - 0.5;
      };
      const std::vector<double> epsilon = Noise(t - 1, k, theta.size());
      for (size_t i = 0; i < theta.size(); ++i) {
        gradient[i] += (utility(all[2 * k]) - utility(all[2 * k + 1])) * epsilon[i] / (10 * noise_std);
      }
    }
    for (size_t i = 0; i < theta.size(); ++i) {
      const double g = gradient[i] - 0.1 * theta[i];
      m[i] = 0.9 * m[i] + 0.1 * g;
      v[i] = 0.999 * v[i] + 0.001 * g * g;
      theta[i] += 0.01 * (m[i] / (1 - std::pow(0.9, t))) / (std::sqrt(v[i] / (1 - std::pow(0.999, t))) + 1e-8);
    }
    ASSERT_TRUE(es.Update(batch, progress, t - 1).ok());
    ExpectNear(es.Parameters(), theta);
    theta = es.Parameters();  // Rounded to float, as the policy is.
  }
}

TEST(Es, StepsEqualTheLiteralOracle) {
  for (const v1::Schedule noise : {v1::SCHEDULE_CONSTANT, v1::SCHEDULE_LINEAR}) ExpectEsOracle(noise);
}

TEST(Es, RanksAreCenteredAndEqualValuesShareThem) {
  EXPECT_THAT(CenteredRanks({30, 10, 20}), ElementsAre(0.5, -0.5, 0));
  EXPECT_THAT(CenteredRanks({1, 1, 0, 2}), ElementsAre(0, 0, -0.5, 0.5));
  EXPECT_THAT(CenteredRanks({7, 7, 7}), ElementsAre(0, 0, 0));
  EXPECT_THAT(CenteredRanks({7}), ElementsAre(0));
}

class Search : public testing::TestWithParam<bool> {};

// The mean of two episodes, less half a point a step: 4 and 1, -1 and 3.
TEST_P(Search, ReturnsAreMeansOverEpisodesLessTheShiftOfEachStep) {
  Batch batch = Directions({13, 8}, {4, 7});
  batch["steps_plus"] = torch::tensor({int64_t{10}, int64_t{20}});
  batch["steps_minus"] = torch::tensor({int64_t{4}, int64_t{2}});
  const auto stats = MakeSearch(Config(GetParam()))->Update(batch, 0, 0);
  ASSERT_TRUE(stats.ok()) << stats.status();
  EXPECT_DOUBLE_EQ(stats->at("direction_return_mean"), (4 + 1 - 1 + 3) / 4.0);
  EXPECT_DOUBLE_EQ(stats->at("direction_return_max"), 4);
}

TEST_P(Search, DropsAndCountsReturnsThatAreNotFinite) {
  const Logged log;
  const auto with = MakeSearch(Config(GetParam())), without = MakeSearch(Config(GetParam()));
  const auto stats = with->Update(Directions({1, 2, kNan, 9, 3}, {4, 0, 8, INFINITY, 1}), 0, 0);
  ASSERT_TRUE(stats.ok()) << stats.status();
  EXPECT_EQ(stats->at("dropped_directions"), 2);
  EXPECT_THAT(log.text(),
              HasSubstr("iteration 0: 2 of 5 directions have returns that are not finite, and are dropped"));
  // As if directions 2 and 3 had not been there; 4 keeps its own noise.
  ASSERT_TRUE(without->Update(Directions({1, 2, kNan, kNan, 3}, {4, 0, kNan, kNan, 1}), 0, 0).ok());
  EXPECT_EQ(with->Parameters(), without->Parameters());
  EXPECT_NE(with->Parameters(), MakeSearch(Config(GetParam()))->Parameters());
}

TEST_P(Search, RepeatsABarrenIterationOnceThenFails) {
  const auto search = MakeSearch(Config(GetParam()));
  const Batch barren = Directions({kNan, 1}, {2, kNan});
  const std::vector<double> before = search->Parameters();
  const Logged log;
  ASSERT_TRUE(search->Update(barren, 0, 0).ok());
  EXPECT_THAT(log.text(), HasSubstr("iteration 0: 2 of 2 directions have returns that are not finite; it changes no"));
  EXPECT_EQ(search->Parameters(), before);
  ASSERT_TRUE(search->Update(Directions({1, 2}, {2, 1}), 0, 1).ok());
  ASSERT_TRUE(search->Update(barren, 0, 2).ok());
  const absl::Status failed = search->Update(barren, 0, 3).status();
  EXPECT_EQ(failed.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(failed.message()), HasSubstr("all 2 directions of 2 iterations in a row"));
}

TEST_P(Search, GoesOnFromItsSavedState) {
  const auto whole = MakeSearch(Config(GetParam())), first = MakeSearch(Config(GetParam()));
  for (int i = 0; i < 4; ++i) ASSERT_TRUE(whole->Update(RandomDirections(6, i), i / 4.0, i).ok());
  for (int i = 0; i < 2; ++i) ASSERT_TRUE(first->Update(RandomDirections(6, i), i / 4.0, i).ok());
  const auto second = MakeSearch(Config(GetParam()));
  ASSERT_TRUE(second->Restore(first->ModelState(), first->OptimizerState()).ok());
  for (int i = 2; i < 4; ++i) ASSERT_TRUE(second->Update(RandomDirections(6, i), i / 4.0, i).ok());
  EXPECT_EQ(second->ParametersDigest(), whole->ParametersDigest());
  StateTensors other = first->ModelState();
  other.pop_back();
  EXPECT_EQ(second->Restore(other, first->OptimizerState()).code(), absl::StatusCode::kInvalidArgument);
}

TEST_P(Search, NormalisesByAllObservationsSoFar) {
  const auto search = MakeSearch(Config(GetParam()));
  std::mt19937 random(1);
  std::normal_distribution<float> normal(4, 2);
  std::vector<std::vector<float>> rows;
  for (int iteration = 0; iteration < 3; ++iteration) {
    Batch batch = Directions({1, 2, 3, 4}, {4, 3, 1, 2});  // 80 steps.
    torch::Tensor sums = torch::empty({2, 6}, torch::kInt64), squares = torch::empty({2, 6}, torch::kInt64);
    for (int fragment = 0; fragment < 2; ++fragment) {
      ExactMoments moments(3);
      for (int i = 0; i < 40; ++i) {
        rows.push_back({normal(random), normal(random) - 9, 1});
        moments.Add(rows.back().data());
      }
      moments.WriteWords(sums[fragment].data_ptr<int64_t>(), squares[fragment].data_ptr<int64_t>());
    }
    batch["obs_sum"] = sums;
    batch["obs_square_sum"] = squares;
    ASSERT_TRUE(search->Update(batch, 0, iteration).ok());
  }
  const ObsScale scale = search->acting().obs_scale;
  for (int64_t i = 0; i < 3; ++i) {
    double mean = 0, variance = 0;
    for (const auto& row : rows) mean += row[i] / 240.0;
    for (const auto& row : rows) variance += std::pow(row[i] - mean, 2) / 240;
    EXPECT_NEAR(scale.mean[i].item<double>(), mean, 1e-5);
    EXPECT_NEAR(scale.inv_std[i].item<double>() * std::sqrt(variance + 1e-8), 1, 1e-5);
  }
}

// Sums have what directions with finite returns observed: 15 steps with each sign of two directions.
TEST_P(Search, StepsOfDroppedDirectionsAreNotCountedAsObservations) {
  const auto search = MakeSearch(Config(GetParam()));
  Batch batch = Directions({1, kNan, 2, 3}, {4, 5, 6, kNan}, 15);
  ExactMoments moments(3);
  const std::vector<float> row = {1, 2, 3};
  for (int i = 0; i < 60; ++i) moments.Add(row.data());
  batch["obs_sum"] = torch::empty({1, 6}, torch::kInt64);
  batch["obs_square_sum"] = torch::empty({1, 6}, torch::kInt64);
  moments.WriteWords(batch["obs_sum"].data_ptr<int64_t>(), batch["obs_square_sum"].data_ptr<int64_t>());
  ASSERT_TRUE(search->Update(batch, 0, 0).ok());
  EXPECT_TRUE(torch::equal(search->acting().obs_scale.mean, torch::tensor({1.0f, 2.0f, 3.0f})));
}

TEST_P(Search, ItsStepFollowsTheSchedule) {
  v1::RunConfig config = Config(GetParam());
  if (GetParam()) {
    config.mutable_ars()->set_step_schedule(v1::SCHEDULE_LINEAR);
  } else {
    config.mutable_es()->set_step_schedule(v1::SCHEDULE_LINEAR);
  }
  const auto search = MakeSearch(config);
  const auto stats = search->Update(RandomDirections(4, 1), 0.75, 0);
  ASSERT_TRUE(stats.ok());
  EXPECT_DOUBLE_EQ(stats->at("step_size"), (GetParam() ? 0.02 : 0.01) / 4);
}

INSTANTIATE_TEST_SUITE_P(Algorithms, Search, testing::Bool(), [](const auto& ars) { return ars.param ? "Ars" : "Es"; });

}  // namespace
}  // namespace skein
