// SPDX-License-Identifier: Apache-2.0
#include "learner/run/collected_iterations.h"

#include <memory>
#include <string>
#include <vector>

#include "base/config/config.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "prometheus/registry.h"

namespace skein {
namespace {

using testing::HasSubstr;

// Four environments of CartPole-v1, whose saved states have 7 numbers, in groups of two.
class CollectedIterationsTest : public testing::Test {
 protected:
  // Saved states of all environments, as far as one can tell from their size.
  static TicketState StateOf(int64_t numbers) {
    const std::vector<double> values(4 * numbers);
    TicketState state;
    v1::Tensor& rows = state.env_state.emplace();
    rows.set_dtype(v1::DATA_TYPE_FLOAT64);
    rows.add_shape(4);
    rows.add_shape(numbers);
    rows.set_data(values.data(), values.size() * sizeof(double));
    return state;
  }
  absl::StatusOr<std::unique_ptr<CollectedIterations>> Make(const TicketState& state) {
    return CollectedIterations::Make(context_, kShare, state, &ranks_, &accounts_, &report_, &service_);
  }

  static constexpr EnvShare kShare = {.first_env = 0, .share_envs = 4};

  LearnerOptions options_{.coordinator = "127.0.0.1:1"};
  prometheus::Registry registry_;
  LearnerMetrics metrics_{&registry_};
  RunContext context_{options_,
                      /*coordinator=*/nullptr,
                      &metrics_,
                      /*shutdown=*/nullptr,
                      /*expulsion=*/nullptr,
                      LoadRunConfig("",
                                    {"env.id=CartPole-v1", "rollout.num_envs=4", "rollout.envs_per_runner=2",
                                     "rollout.steps_per_iteration=8", "ppo.minibatch_size=8"},
                                    2)
                          .value(),
                      "run"};
  RunAccounts accounts_{&metrics_};
  RunCallbacks callbacks_{context_.config, {}};
  RunReport report_{context_, accounts_, &callbacks_};
  ElasticRanks ranks_{context_, [](const std::string&) {}};
  LearnerService service_;
};

void ExpectOfAnotherVersion(const absl::Status& status) {
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(status.message()), HasSubstr("of another version of CartPole-v1: a state has 6 numbers"));
}

TEST_F(CollectedIterationsTest, AreNotMadeFromStatesOfAnotherVersion) {
  ExpectOfAnotherVersion(Make(StateOf(6)).status());
  EXPECT_TRUE(Make(StateOf(7)).ok());
}

TEST_F(CollectedIterationsTest, TakeNoShareWithStatesOfAnotherVersion) {
  const auto iterations = Make({});
  ASSERT_TRUE(iterations.ok()) << iterations.status();
  ExpectOfAnotherVersion((*iterations)->TakeShare(kShare, StateOf(6), /*trainer=*/nullptr));
  EXPECT_TRUE((*iterations)->TakeShare(kShare, StateOf(7), /*trainer=*/nullptr).ok());
  EXPECT_TRUE((*iterations)->TakeShare(kShare, {}, /*trainer=*/nullptr).ok());  // They begin their first episodes.
}

}  // namespace
}  // namespace skein
