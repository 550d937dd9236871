// SPDX-License-Identifier: Apache-2.0
#include "env/external/external_batch.h"

#include <cmath>
#include <map>
#include <stdexcept>

#include "base/process/clock.h"
#include "env/external/external_counts.h"
#include "env/external/server_hangs.h"
#include "env/hopeless_env.h"
#include "gmock/gmock.h"
#include "tests/env/external/fake_world.h"

namespace skein {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

const EnvSpec kSpec = {
    .id = "exec:fake", .obs_size = 1, .action_size = 1, .action_low = {-1}, .action_high = {1}, .relocatable = false};

// Worlds whose environments observe the steps of their episode, after what `meddle` does.
class Batch {
 public:
  using Meddle = std::function<absl::Status(FakeWorld*, WorldRequest)>;

  explicit Batch(size_t count, Meddle meddle = {}, uint32_t restarts = 3,
                 absl::Duration step_timeout = absl::Seconds(60))
      : steps_(count),
        meddle_(std::move(meddle)),
        batch_({.id = kSpec.id, .step_timeout = step_timeout, .restarts = restarts}, MakeWorld(), [this] {
          ++opened;
          return absl::StatusOr<std::unique_ptr<World>>(MakeWorld());
        }) {}

  // As VectorEnv does.
  void ResetAll(uint32_t first_seed) {
    for (uint32_t e = 0; e < steps_.size(); ++e) batch_.Reset(e, first_seed + 2 * e);
  }
  // Rewards of a step; where it ended the episode, the next one begins with the seed 100.
  std::vector<float> Step() {
    const std::vector<float> action(steps_.size());
    const std::vector<uint32_t> seeds(steps_.size(), 100);
    batch_.Step(action.data(), seeds.data());
    std::vector<float> rewards(steps_.size());
    for (size_t e = 0; e < steps_.size(); ++e) {
      const bool terminated = batch_.TakeStep(e, action.data(), &rewards[e]);
      if (terminated || batch_.truncated(e) || !std::isfinite(rewards[e])) batch_.Reset(e, 100);
    }
    return rewards;
  }
  float Observe(size_t e) const {
    float obs = -1;
    batch_.Observe(e, &obs);
    return obs;
  }

  std::vector<std::vector<uint32_t>> seeds;  // Of each reset, those of the environments that it was for.
  int opened = 0;

 private:
  std::unique_ptr<World> MakeWorld() {
    return std::make_unique<FakeWorld>(kSpec, steps_.size(), [this](FakeWorld* world, WorldRequest request) {
      const WorldColumns& columns = world->columns();
      if (request == WorldRequest::kReset) seeds.emplace_back();
      for (size_t e = 0; e < steps_.size(); ++e) {
        const bool begins = request == WorldRequest::kReset && columns.mask[e] != 0;
        if (begins) steps_[e] = 0;
        if (request == WorldRequest::kStep) ++steps_[e];
        columns.failed[e] = columns.terminated[e] = columns.truncated[e] = 0;
        columns.active[e] = 1;
        columns.reward[e] = 1;
        if (begins) seeds.back().push_back(columns.seed[e]);
        world->Observe(e, static_cast<float>(steps_[e]));
      }
      return meddle_ ? meddle_(world, request) : absl::OkStatus();
    });
  }

  std::vector<int> steps_;
  const Meddle meddle_;
  ExternalBatch batch_;
};

TEST(ExternalBatch, BeginsEpisodesWithTheirSeeds) {
  Batch batch(3);
  batch.ResetAll(10);
  // Seeds of the protocol are halves.
  EXPECT_THAT(batch.seeds, ElementsAre(ElementsAre(5), ElementsAre(6), ElementsAre(7)));
  EXPECT_THAT(batch.Step(), ElementsAre(1, 1, 1));
  EXPECT_EQ(batch.Observe(2), 1);
  batch.ResetAll(10);  // In the middle of episodes.
  EXPECT_EQ(batch.seeds.size(), 6u);
  EXPECT_EQ(batch.Observe(2), 0);
}

TEST(ExternalBatch, LosesTheEpisodeOfAnExceptionAndNoTime) {
  int requests = 0;
  Batch batch(2, [&](FakeWorld* world, WorldRequest request) {
    // Environment 1 fails in each other step, far more often than there are restarts.
    if (request == WorldRequest::kStep && ++requests % 2 == 0) world->Fail(1, "ZeroDivisionError");
    return absl::OkStatus();
  });
  batch.ResetAll(10);
  const uint64_t lost = CountsOfExternalEnvs().lost_episodes;
  const absl::Duration begin = MonotonicNow();
  for (int step = 1; step <= 200; ++step) {
    const std::vector<float> rewards = batch.Step();
    ASSERT_EQ(rewards[0], 1);
    ASSERT_EQ(batch.Observe(0), step);  // Its episode goes on.
    ASSERT_EQ(std::isnan(rewards[1]), step % 2 == 0);
    ASSERT_EQ(batch.Observe(1), step % 2);  // The next one has begun.
  }
  EXPECT_EQ(CountsOfExternalEnvs().lost_episodes, lost + 100);
  EXPECT_EQ(batch.opened, 0);
  // A pause would take 0.1 s, and grow.
  EXPECT_LT(MonotonicNow() - begin, absl::Seconds(5));
}

// Steps until the batch gives up, with what it says then. The first `good` steps succeed, all others fail.
std::pair<int, std::string> StepsUntilItGivesUp(int good, uint32_t restarts) {
  int requests = 0;
  Batch batch(
      1,
      [&](FakeWorld* world, WorldRequest request) {
        if (request == WorldRequest::kStep && ++requests > good) world->Fail(0, "KeyError");
        return absl::OkStatus();
      },
      restarts);
  batch.ResetAll(10);
  int steps = 0;
  try {
    while (++steps < 1000) batch.Step();
  } catch (const std::runtime_error& error) {
    return {steps, error.what()};
  }
  return {steps, ""};
}

TEST(ExternalBatch, GivesUpWhereStepsNoLongerSucceed) {
  const auto [steps, why] = StepsUntilItGivesUp(/*good=*/1, /*restarts=*/2);
  EXPECT_THAT(why, HasSubstr("failed more than 2 times within 10m (env.external.restarts), the last time: KeyError"));
  EXPECT_EQ(steps, 31);  // The good one, ten for each of two restarts, and the ten that are too many.
}

TEST(ExternalBatch, GivesUpSoonWhereNoStepEverSucceeds) {
  const auto [steps, why] = StepsUntilItGivesUp(/*good=*/0, /*restarts=*/20);
  EXPECT_THAT(why, HasSubstr("each of its first 40 steps failed (skein env check says more), the last one: KeyError"));
  EXPECT_EQ(steps, 40);
}

// Servers that answer when an episode begins, and in steps `answers` says which answer.
int ServersUntilItGivesUp(const std::function<bool(int step)>& answers, std::string* why) {
  int steps = 0;
  Batch batch(
      2,
      [&](FakeWorld*, WorldRequest request) {
        if (request != WorldRequest::kStep || answers(++steps)) return absl::OkStatus();
        return absl::UnavailableError("its server was ended by signal 9");
      },
      /*restarts=*/20);
  batch.ResetAll(10);
  try {
    while (steps < 8) batch.Step();
  } catch (const std::runtime_error& error) {
    *why = error.what();
  }
  return 1 + batch.opened;
}

TEST(ExternalBatch, GivesUpWhereServersEndWithoutAGoodStepBetween) {
  std::string why;
  EXPECT_EQ(ServersUntilItGivesUp([](int) { return false; }, &why), 5);
  EXPECT_THAT(why, HasSubstr("its server failed 5 times in a row without one good step between (skein env check says "
                             "more), the last time: its server was ended by signal 9"));
  why.clear();
  EXPECT_EQ(ServersUntilItGivesUp([](int step) { return step == 2; }, &why), 6);
  EXPECT_THAT(why, HasSubstr("failed 5 times in a row"));
}

TEST(ExternalBatch, GoesOnWhereServersEndNowAndThen) {
  std::string why;
  EXPECT_EQ(ServersUntilItGivesUp([](int step) { return step % 4 == 0; }, &why), 7);  // Six of eight steps.
  EXPECT_EQ(why, "");
}

// A batch of one environment whose steps after the first `good` ones hang, for no time.
std::unique_ptr<Batch> MakeHanging(int good, int* steps) {
  return std::make_unique<Batch>(
      1,
      [good, steps](FakeWorld*, WorldRequest request) {
        if (request != WorldRequest::kStep || ++*steps <= good) return absl::OkStatus();
        return absl::DeadlineExceededError("its server has not answered within 0 s");
      },
      /*restarts=*/20, /*step_timeout=*/absl::ZeroDuration());
}

TEST(ExternalBatch, GivesUpForGoodWhereServersHangAndNobodySteps) {
  int steps = 0, others_steps = 0;
  const auto batch = MakeHanging(/*good=*/1, &steps), other = MakeHanging(/*good=*/2, &others_steps);
  batch->ResetAll(10);
  other->ResetAll(10);
  batch->Step();
  for (int i = 0; i < 2; ++i) batch->Step();
  other->Step();
  for (int i = 0; i < 2; ++i) batch->Step();  // The other's step made an end of those before.
  try {
    other->Step();  // A good one.
    for (int i = 0; i < 2; ++i) other->Step();
    other->Step();
    ADD_FAILURE() << "it goes on";
  } catch (const HopelessEnv& error) {
    EXPECT_EQ(error.code(), absl::StatusCode::kDeadlineExceeded);
    EXPECT_THAT(error.what(), HasSubstr("servers hung 3 times in a row, and no environment of this process has taken a "
                                        "step meanwhile"));
    EXPECT_THAT(error.what(), HasSubstr("its server has not answered within 0 s"));
  }
  EXPECT_EQ(others_steps, 5);
  EXPECT_THROW(batch->Step(), HopelessEnv);  // Whichever group hangs next.
  Batch good(1);
  good.ResetAll(10);
  good.Step();
}

TEST(ServerHangs, AreInARowUntilAStep) {
  ServerHangs hangs;
  EXPECT_FALSE(hangs.stepped());
  hangs.Count(absl::Seconds(0), absl::Seconds(60));
  hangs.Count(absl::Seconds(1), absl::Seconds(61));  // At the same time.
  EXPECT_EQ(hangs.in_a_row(), 1);
  hangs.Count(absl::Seconds(62), absl::Seconds(122));
  EXPECT_EQ(hangs.in_a_row(), 2);
  hangs.CountStep();
  EXPECT_TRUE(hangs.stepped());
  EXPECT_EQ(hangs.in_a_row(), 0);
  hangs.Count(absl::Seconds(100), absl::Seconds(160));
  EXPECT_EQ(hangs.in_a_row(), 1);
}

TEST(ExternalBatch, GivesUpWhereAnEpisodeNeverBegins) {
  int resets = 0;
  Batch batch(
      2,
      [&](FakeWorld* world, WorldRequest request) {
        if (request == WorldRequest::kReset && world->columns().mask[1] != 0) {
          ++resets;
          world->Fail(1, "no map");
        }
        return absl::OkStatus();
      },
      /*restarts=*/2);
  EXPECT_THROW(batch.ResetAll(10), std::runtime_error);
  EXPECT_EQ(resets, 4);  // With another seed at once, and again after each of two pauses.
}

TEST(ExternalBatch, BeginsWithAnotherSeedWhatCannotBeginWithItsOwn) {
  Batch batch(
      1,
      [&](FakeWorld* world, WorldRequest request) {
        if (request == WorldRequest::kReset && world->columns().seed[0] == 5) world->Fail(0, "no map with this seed");
        return absl::OkStatus();
      },
      /*restarts=*/0);
  batch.ResetAll(10);
  ASSERT_THAT(batch.seeds, ElementsAre(ElementsAre(5), ElementsAre(testing::Ne(5u))));
  const auto first = batch.seeds;
  batch.seeds.clear();
  batch.ResetAll(10);
  EXPECT_EQ(batch.seeds, first);  // The same one each time.
  EXPECT_THAT(batch.Step(), ElementsAre(1));
}

TEST(ExternalBatch, StartsAServerAgainThatHasEnded) {
  bool end = false;
  Batch batch(2, [&](FakeWorld*, WorldRequest) {
    return std::exchange(end, false) ? absl::UnavailableError("its server was ended by signal 9") : absl::OkStatus();
  });
  batch.ResetAll(10);
  batch.Step();
  const uint64_t lost = CountsOfExternalEnvs().lost_episodes;
  end = true;
  EXPECT_THAT(batch.Step(), testing::Each(testing::IsNan()));
  EXPECT_EQ(batch.opened, 1);
  EXPECT_EQ(CountsOfExternalEnvs().lost_episodes, lost + 2);
  EXPECT_THAT(batch.Step(), ElementsAre(1, 1));
  for (int i = 0; i < 3; ++i) {
    end = true;
    if (i < 2) batch.Step();
  }
  EXPECT_THROW(batch.Step(), std::runtime_error);  // Three restarts are all there are.
}

TEST(ExternalBatch, RefusesNumbersThatAreNone) {
  std::map<std::string, std::function<void(const WorldColumns&)>> wrong = {
      {"observation", [](const WorldColumns& columns) { columns.observation[1] = NAN; }},
      {"reward", [](const WorldColumns& columns) { columns.reward[1] = INFINITY; }},
      {"large", [](const WorldColumns& columns) { columns.observation[1] = 1e7f; }},
      {"flag", [](const WorldColumns& columns) { columns.terminated[1] = 2; }},
      {"both", [](const WorldColumns& columns) { columns.terminated[1] = columns.truncated[1] = 1; }},
      {"active", [](const WorldColumns& columns) { columns.active[1] = 7; }},
      {"final", [](const WorldColumns& columns) { columns.truncated[1] = 1, columns.final_observation[1] = NAN; }},
  };
  for (const auto& [name, spoil] : wrong) {
    int steps = 0;
    Batch batch(2, [&, spoil = spoil](FakeWorld* world, WorldRequest request) {
      if (request == WorldRequest::kStep && ++steps == 2) spoil(world->columns());
      return absl::OkStatus();
    });
    batch.ResetAll(10);
    batch.Step();
    const std::vector<float> rewards = batch.Step();
    EXPECT_EQ(rewards[0], 1) << name;
    EXPECT_TRUE(std::isnan(rewards[1])) << name;
    EXPECT_EQ(batch.Observe(1), 0) << name;
  }
}

}  // namespace
}  // namespace skein
