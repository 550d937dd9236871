// SPDX-License-Identifier: Apache-2.0
#include "learner/ranks/rank_forming.h"

#include <deque>
#include <utility>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace skein {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using Kind = RankFormation::Kind;

// A rank whose incarnation is 100 + rank.
v1::RankOffer New(uint32_t rank) {
  v1::RankOffer offer;
  offer.set_rank(rank);
  offer.set_incarnation(100 + rank);
  return offer;
}

v1::RankOffer Of(uint64_t group, const std::vector<uint32_t>& ranks_of_group, uint32_t rank, uint64_t iteration) {
  v1::RankOffer offer = New(rank);
  offer.set_group(group);
  offer.set_attempted(group);
  for (uint32_t other : ranks_of_group) offer.add_incarnations(100 + other);
  offer.set_iteration(iteration);
  return offer;
}

std::vector<uint32_t> RanksOf(const RankFormation& formation) {
  std::vector<uint32_t> ranks;
  for (const v1::RankOffer& member : formation.members) ranks.push_back(member.rank());
  return ranks;
}

TEST(RankFormation, NewRanksWaitUntilAllAreThere) {
  const RankFormation two = DecideFormation({New(0), New(2)}, 2, 3, 1);
  EXPECT_EQ(two.kind, Kind::kWait);
  EXPECT_FALSE(two.blocked);
  EXPECT_THAT(two.missing, ElementsAre(1));
  EXPECT_EQ(two.missing_text, "learner rank 1 is missing: 2 of 3 are here, learner.min_ranks is 1");
  const RankFormation all = DecideFormation({New(1), New(0), New(2)}, 2, 3, 1);
  EXPECT_EQ(all.kind, Kind::kForm);
  EXPECT_FALSE(all.has_state);
  EXPECT_EQ(all.number, 1u);
  EXPECT_THAT(RanksOf(all), ElementsAre(0, 1, 2));
  EXPECT_THAT(all.missing, IsEmpty());
}

TEST(RankFormation, TiredOfWaitingNewRanksBeginWithTheLeastNumberOrAreBlocked) {
  v1::RankOffer tired = New(0);
  tired.set_tired(true);
  EXPECT_EQ(DecideFormation({tired, New(2)}, 2, 3, 2).kind, Kind::kForm);
  const RankFormation blocked = DecideFormation({tired}, 0, 3, 2);
  EXPECT_EQ(blocked.kind, Kind::kWait);
  EXPECT_TRUE(blocked.blocked);
  EXPECT_EQ(blocked.missing_text, "learner ranks 1, 2 are missing: 1 of 3 is here, learner.min_ranks is 2");
}

TEST(RankFormation, TheOthersGoOnWithoutALostRankFromTheStateThatAllHave) {
  // Group 1 was of ranks 0, 1 and 2.
  const RankFormation formation = DecideFormation({Of(1, {0, 1, 2}, 2, 7), Of(1, {0, 1, 2}, 1, 7)}, 1, 3, 2);
  EXPECT_EQ(formation.kind, Kind::kForm);
  EXPECT_TRUE(formation.has_state);
  EXPECT_EQ(formation.number, 2u);
  EXPECT_THAT(RanksOf(formation), ElementsAre(1, 2));
  EXPECT_THAT(formation.missing, ElementsAre(0));
}

TEST(RankFormation, FewerThanTheLeastNumberAreBlocked) {
  const RankFormation formation = DecideFormation({Of(1, {0, 1}, 0, 7)}, 0, 2, 2);
  EXPECT_EQ(formation.kind, Kind::kWait);
  EXPECT_TRUE(formation.blocked);
  EXPECT_EQ(formation.missing_text, "learner rank 1 is missing: 1 of 2 is here, learner.min_ranks is 2");
}

TEST(RankFormation, TheRankWithTheNewestStateComesFirst) {
  // Rank 2 finished the update that ranks 0 and 1 broke off.
  const std::vector<uint32_t> all = {0, 1, 2};
  EXPECT_THAT(RanksOf(DecideFormation({Of(1, all, 0, 7), Of(1, all, 1, 7), Of(1, all, 2, 8)}, 0, 3, 1)),
              ElementsAre(2, 0, 1));
}

TEST(RankFormation, ASuccessorJoinsBehindThoseThatHaveAState) {
  const RankFormation formation = DecideFormation({New(0), Of(3, {0, 1}, 1, 7)}, 0, 2, 1);
  EXPECT_EQ(formation.kind, Kind::kForm);
  EXPECT_TRUE(formation.has_state);
  EXPECT_EQ(formation.number, 4u);
  EXPECT_THAT(RanksOf(formation), ElementsAre(1, 0));
}

TEST(RankFormation, ARankThatTheOthersWentOnWithoutIsLeftBehind) {
  // Group 1 was of both; rank 0 then formed group 2 alone.
  const std::vector<v1::RankOffer> offers = {Of(2, {0}, 0, 9), Of(1, {0, 1}, 1, 7)};
  EXPECT_EQ(DecideFormation(offers, 1, 2, 1).kind, Kind::kLeftBehind);
  const RankFormation formation = DecideFormation(offers, 0, 2, 1);
  EXPECT_EQ(formation.kind, Kind::kForm);
  EXPECT_THAT(RanksOf(formation), ElementsAre(0));
}

TEST(RankFormation, AMemberOfANewerGroupThatFailedToConnectStaysIn) {
  // Rank 0 thought that group 2 of both was formed, rank 1 did not.
  EXPECT_THAT(RanksOf(DecideFormation({Of(2, {0, 1}, 0, 7), Of(1, {0, 1}, 1, 7)}, 1, 2, 1)), ElementsAre(0, 1));
}

TEST(RankFormation, NumbersAreHigherThanAnyThatWasTried) {
  v1::RankOffer tried = Of(3, {0, 1}, 0, 7);
  tried.set_attempted(8);
  EXPECT_EQ(DecideFormation({tried, Of(3, {0, 1}, 1, 7)}, 0, 2, 1).number, 9u);
}

TEST(LeastRanks, ZeroAndTooManyAreAll) {
  EXPECT_EQ(LeastRanks(0, 4), 4u);
  EXPECT_EQ(LeastRanks(2, 4), 2u);
  EXPECT_EQ(LeastRanks(9, 4), 4u);
}

// Answers at the barrier "form" with what a test says; then with what arrives, alone.
class Client final : public CoordinatorClient {
 public:
  const v1::RunConfig& config() const override { return config_; }
  Membership membership() const override { return {}; }
  absl::Status Leave() override { return absl::OkStatus(); }
  absl::StatusOr<BarrierResult> ArriveAtBarrier(const Barrier& barrier) override {
    EXPECT_EQ(barrier.generation, 0u);
    EXPECT_EQ(barrier.participants, 0u);
    if (answers.empty()) return BarrierResult{{"learner-0"}, {barrier.payload}};
    const auto answer = answers.front();
    answers.pop_front();
    return answer;
  }

  std::deque<absl::StatusOr<BarrierResult>> answers;

 private:
  const v1::RunConfig config_;
};

FormingOptions OptionsOfTwo() {
  FormingOptions options;
  options.ranks = options.min_ranks = 2;
  options.stopping = [] { return false; };
  return options;
}

TEST(MeetToForm, TriesAgainWhatPassesAndReturnsTheGroup) {
  Client client;
  client.answers = {absl::DeadlineExceededError("learner-1 is absent"), absl::UnavailableError("no coordinator"),
                    absl::FailedPreconditionError("stale generation"),
                    CoordinatorClient::BarrierResult{{"learner-0"}, {New(0).SerializeAsString()}},
                    CoordinatorClient::BarrierResult{{"learner-0", "learner-1"},
                                                     {New(0).SerializeAsString(), New(1).SerializeAsString()}}};
  std::vector<Kind> seen;
  FormingOptions options = OptionsOfTwo();
  options.on_look = [&](const RankFormation& formation) { seen.push_back(formation.kind); };
  const auto formation = MeetToForm(options, New(0), &client);
  ASSERT_TRUE(formation.ok()) << formation.status();
  EXPECT_THAT(RanksOf(*formation), ElementsAre(0, 1));
  EXPECT_THAT(seen, ElementsAre(Kind::kWait, Kind::kForm));
}

TEST(MeetToForm, EndsWhenToldTo) {
  Client client;
  FormingOptions options = OptionsOfTwo();
  int asked = 0;
  options.stopping = [&] { return ++asked > 1; };
  EXPECT_TRUE(absl::IsAborted(MeetToForm(options, Of(1, {0, 1}, 0, 7), &client).status()));
}

TEST(MeetToForm, RanksThatNeverMetEndNamingWhoIsMissing) {
  Client client;
  FormingOptions options = OptionsOfTwo();
  options.limit = absl::Milliseconds(1);
  const absl::Status status = MeetToForm(options, New(0), &client).status();
  EXPECT_TRUE(absl::IsAborted(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("learner rank 1 is missing"));
}

TEST(MeetToForm, OtherErrorsAreNotTriedAgain) {
  Client client;
  client.answers = {absl::InvalidArgumentError("no")};
  EXPECT_TRUE(absl::IsInvalidArgument(MeetToForm(OptionsOfTwo(), New(0), &client).status()));
  client.answers = {CoordinatorClient::BarrierResult{{"learner-0"}, {"\xff\xff"}}};
  EXPECT_TRUE(absl::IsInternal(MeetToForm(OptionsOfTwo(), New(0), &client).status()));
}

}  // namespace
}  // namespace skein
