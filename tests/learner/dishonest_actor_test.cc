// SPDX-License-Identifier: Apache-2.0
// What an actor says that cannot be.
#include <limits>
#include <sstream>

#include "gmock/gmock.h"
#include "spdlog/sinks/ostream_sink.h"
#include "spdlog/spdlog.h"
#include "tests/learner/collector_fixture.h"

namespace skein {
namespace {

using testing::HasSubstr;
using testing::Not;
using testing::SizeIs;

TEST_F(CollectorTest, RefusesIdsAndGenerationsThatNoActorHas) {
  for (const std::string& id : {std::string(), std::string(65, 'a'), std::string("a b"), std::string("a\x1b[2J")}) {
    const absl::Status refused = collector_.Open(MakeHello({id, 1})).status();
    EXPECT_TRUE(absl::IsInvalidArgument(refused)) << refused;
    EXPECT_EQ(refused.message().find('\x1b'), absl::string_view::npos);
  }
  EXPECT_TRUE(absl::IsInvalidArgument(collector_.Open(MakeHello({"ada", 0})).status()));
  EXPECT_EQ(collector_.actors(), 0);
  EXPECT_TRUE(collector_.Open(MakeHello({std::string(64, 'a'), 1})).ok());
}

TEST_F(CollectorTest, WhatOthersSayComesShortAndCleanIntoErrors) {
  v1::Hello hello = MakeHello(kAda);
  hello.set_run_id("\x1b[2J\n" + std::string(1 << 20, 'x'));
  const absl::Status refused = collector_.Open(hello).status();
  EXPECT_TRUE(absl::IsFailedPrecondition(refused));
  EXPECT_LT(refused.message().size(), 200u);
  EXPECT_EQ(refused.message().find_first_of("\x1b\n"), absl::string_view::npos);
  hello.set_run_id("run");
  hello.mutable_env_spec()->set_env_id("\x1b[2J\n" + std::string(1 << 20, 'x'));
  EXPECT_LT(collector_.Open(hello).status().message().size(), 300u);
}

TEST_F(CollectorTest, SecondsThatCannotBeAreNotAdded) {
  Open(kAda, 2);
  collector_.OpenIteration(1);
  const auto grants = collector_.TakeGrants();
  ASSERT_THAT(grants, SizeIs(2));
  SampleFragment lie = Serve(kAda, grants[0].second), truth = Serve(kAda, grants[1].second);
  lie.header.mutable_stage_seconds()->set_env_step(std::numeric_limits<double>::quiet_NaN());
  lie.header.mutable_stage_seconds()->set_inference(std::numeric_limits<double>::infinity());
  lie.header.mutable_stage_seconds()->set_build(-5);
  lie.header.mutable_stage_seconds()->set_wait(1e300);
  truth.header.mutable_stage_seconds()->set_env_step(1);
  truth.header.mutable_stage_seconds()->set_inference(2);
  truth.header.mutable_stage_seconds()->set_build(3);
  truth.header.mutable_stage_seconds()->set_wait(4);
  EXPECT_EQ(Deliver(kAda, lie), v1::RECEIPT_RESULT_ACCEPTED);
  EXPECT_EQ(Deliver(kAda, truth), v1::RECEIPT_RESULT_ACCEPTED);
  const auto iteration = Take();
  ASSERT_TRUE(iteration);
  EXPECT_EQ(iteration->stage_seconds.env_step(), 1);
  EXPECT_EQ(iteration->stage_seconds.inference(), 2);
  EXPECT_EQ(iteration->stage_seconds.build(), 3);
  EXPECT_EQ(iteration->stage_seconds.wait(), 4 + 3600);  // An hour is the most.
}

TEST_F(CollectorTest, AFragmentForAnotherGroupThanItsTicketsIsRejected) {
  Open(kAda);
  collector_.OpenIteration(1);
  const auto grants = collector_.TakeGrants();
  SampleFragment fragment = Serve(kAda, grants[0].second);
  fragment.header.set_first_env(fragment.header.first_env() + 1);
  EXPECT_EQ(Deliver(kAda, fragment), v1::RECEIPT_RESULT_REJECTED);
}

TEST_F(CollectorTest, AnothersTicketIsRejectedAndStaysTheOthers) {
  Open(kAda);
  Open(kBob);
  collector_.OpenIteration(1);
  const auto grants = collector_.TakeGrants();
  ASSERT_THAT(grants, SizeIs(2));
  const auto& [holder, ticket] = grants[0];
  const v1::Receipt receipt =
      collector_.Receive(grants[1].first, ReceivedFragment(Serve(grants[1].first, ticket)).frame(), 1);
  EXPECT_EQ(receipt.result(), v1::RECEIPT_RESULT_REJECTED);
  EXPECT_EQ(receipt.message(), "ticket_id: 1 was not granted to " + grants[1].first.actor_id);
  EXPECT_EQ(collector_.account().rejected(), kFragmentSteps);
  EXPECT_EQ(MetricValue(registry_, "skein_learner_batches_total", {{"result", "rejected"}}), 1);
  EXPECT_EQ(Deliver(holder, Serve(holder, ticket)), v1::RECEIPT_RESULT_ACCEPTED);
}

TEST_F(CollectorTest, AnImpossibleClaimOfStepsIsRejectedAndNotBooked) {
  Open(kAda);
  collector_.OpenIteration(1);
  const auto grants = collector_.TakeGrants();
  SampleFragment fragment = Serve(kAda, grants[0].second);
  fragment.header.set_env_steps_collected(~uint64_t{0});
  EXPECT_EQ(Deliver(kAda, fragment), v1::RECEIPT_RESULT_REJECTED);
  EXPECT_EQ(collector_.account().collected(), kFragmentSteps);  // Its own steps, counted as rejected.
}

TEST_F(CollectorTest, WhatAnActorHadNoTicketsForItHasNotCollected) {
  std::ostringstream said;
  const auto logger = spdlog::default_logger();
  spdlog::set_default_logger(
      std::make_shared<spdlog::logger>("test", std::make_shared<spdlog::sinks::ostream_sink_mt>(said)));
  Open(kAda, 2);
  Open(kBob);
  collector_.OpenIteration(1);
  ASSERT_THAT(collector_.TakeGrants(), SizeIs(2));  // One each.
  v1::Goodbye goodbye;
  goodbye.set_env_steps_collected(~uint64_t{0});
  collector_.Depart(kAda, goodbye);
  EXPECT_EQ(collector_.account().collected(), kFragmentSteps);
  EXPECT_EQ(collector_.account().lost(), kFragmentSteps);
  collector_.Close(kBob, ~uint64_t{0});
  EXPECT_EQ(collector_.account().collected(), 2 * kFragmentSteps);
  ExpectBalance();
  spdlog::set_default_logger(logger);
  EXPECT_THAT(said.str(), HasSubstr("ada (generation 1) says that it has collected 18446744073709551611 env steps"));
  EXPECT_THAT(said.str(), Not(HasSubstr("bob")));  // Rarely.
}

}  // namespace
}  // namespace skein
