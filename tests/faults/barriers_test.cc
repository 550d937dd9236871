// SPDX-License-Identifier: Apache-2.0
// Rows 12 to 14: barriers between real processes of which some do not come, die, or come twice. The same rows on a
// simulated clock: tests/coordinator/coordinator_state_test.cc, barrier_test.cc.
#include <csignal>
#include <cstdlib>
#include <regex>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/integration/cluster.h"
#include "tests/testing/scrape.h"
#include "tests/testing/wait_until.h"

namespace skein {
namespace {

using testing::AllOf;
using testing::HasSubstr;

struct Arrival {
  std::string code, text;
  double seconds = 0;
};

// A real member of the run (barrier_member.cc).
class BarrierMember {
 public:
  BarrierMember(const Cluster& cluster, const std::vector<std::string>& arrivals)
      : process_(BARRIER_MEMBER, Arguments(cluster.address(), arrivals)),
        id_(process_.WaitForOutput("joined (\\S+)")) {}

  const std::string& id() const { return id_; }
  Running& process() { return process_; }
  // How its `number`-th arrival ended, from 1. Waits for that.
  Arrival Ended(size_t number) {
    Arrival arrival;
    WaitUntil(
        [&] {
          const std::string output = process_.Output();
          static const auto* const kLine = new std::regex("arrived \\S+ \\d+ code=(\\S+) seconds=(\\S+) text=(.*)\n");
          size_t seen = 0;
          for (std::sregex_iterator it(output.begin(), output.end(), *kLine), end; it != end; ++it) {
            if (++seen < number) continue;
            arrival = {(*it)[1], (*it)[3], std::strtod((*it)[2].str().c_str(), nullptr)};
            return true;
          }
          return process_.ended();
        },
        absl::Minutes(1), absl::Milliseconds(10));
    EXPECT_FALSE(arrival.code.empty()) << process_.Output();
    return arrival;
  }

 private:
  static std::vector<std::string> Arguments(const std::string& address, const std::vector<std::string>& arrivals) {
    std::vector<std::string> arguments = {address};
    arguments.insert(arguments.end(), arrivals.begin(), arrivals.end());
    return arguments;
  }

  Running process_;
  const std::string id_;
};

class BarrierFaults : public testing::Test {
 protected:
  BarrierFaults() : cluster_({}) { cluster_.StartCoordinator(); }

  // Until so many calls wait at barriers.
  void WaitForWaiters(int waiters) const {
    WaitUntil([&] { return Scrape(cluster_.http_port(), "skein_coordinator_barrier_waiters") == waiters; },
              absl::Seconds(30), absl::Milliseconds(10));
  }
  double Timeouts() const { return Scrape(cluster_.http_port(), "skein_coordinator_barrier_timeouts_total"); }

  Cluster cluster_;
};

class FaultRow12 : public BarrierFaults {};
class FaultRow14 : public BarrierFaults {};

TEST_F(FaultRow12, OneOfThreeNeverArrivesAllAreToldTheSameInTimeAndTheNextGenerationWorks) {
  // The one that stays away from generation 1 waits at 2 from the start; the others come to 1 together.
  BarrierMember away(cluster_, {"start:2:3:60"});
  WaitForWaiters(1);
  const std::vector<std::string> arrivals = {"gate:1:2:60", "start:1:3:2", "start:2:3:60"};
  BarrierMember one(cluster_, arrivals), two(cluster_, arrivals);
  const Arrival first = one.Ended(2);
  EXPECT_EQ(first.code, "DEADLINE_EXCEEDED");
  EXPECT_NEAR(first.seconds, 2, 0.5);
  EXPECT_THAT(first.text, AllOf(HasSubstr("\"start\" generation 1 timed out"), HasSubstr("absent: ")));
  EXPECT_THAT(first.text, HasSubstr(away.id()));
  const Arrival second = two.Ended(2);
  EXPECT_EQ(second.code, "DEADLINE_EXCEEDED");
  EXPECT_NEAR(second.seconds, 2, 0.5);
  EXPECT_EQ(second.text, first.text);  // Generation and absent members.
  EXPECT_EQ(Timeouts(), 1);
  for (BarrierMember* member : {&one, &two}) {
    const Arrival next = member->Ended(3);
    EXPECT_EQ(next.code, "OK") << next.text;
  }
  EXPECT_EQ(away.Ended(1).code, "OK");
  EXPECT_EQ(one.Ended(3).text, absl::StrCat(away.id(), " ", one.id(), " ", two.id()));
}

// One waits at "gate" first, so that the barrier "go" waits for it while another one dies in there.
class FaultRow13 : public BarrierFaults {
 protected:
  // `number` of participants that "go" takes, within `seconds`.
  void KillOneOfThree(int number, int seconds) {
    const std::string go = absl::StrCat("go:1:", number, ":", seconds);
    late_ = std::make_unique<BarrierMember>(cluster_, std::vector<std::string>{"gate:1:2:60", go});
    WaitForWaiters(1);
    BarrierMember dies(cluster_, {go});
    WaitForWaiters(2);
    stays_ = std::make_unique<BarrierMember>(cluster_, std::vector<std::string>{go});
    WaitForWaiters(3);
    dies.process().Kill();
    const BarrierMember opens_the_gate(cluster_, {"gate:1:2:60"});
    EXPECT_EQ(late_->Ended(1).code, "OK");
    late_end_ = late_->Ended(2);
    stays_end_ = stays_->Ended(1);
    const auto status = cluster_.Status();
    ASSERT_TRUE(status.ok());
    EXPECT_EQ(status->expirations(), 1u);
  }

  std::unique_ptr<BarrierMember> late_, stays_;
  Arrival late_end_, stays_end_;
};

TEST_F(FaultRow13, AWaiterIsKilledAndAnElasticBarrierOpensForTheRestWhenItsLeaseHasEnded) {
  KillOneOfThree(0, 60);
  EXPECT_EQ(late_end_.code, "OK") << late_end_.text;
  EXPECT_EQ(stays_end_.code, "OK") << stays_end_.text;
  EXPECT_EQ(stays_end_.text, absl::StrCat(late_->id(), " ", stays_->id()));
  EXPECT_EQ(late_end_.text, stays_end_.text);
  EXPECT_LE(stays_end_.seconds, 15);  // With the lease of 2 s, not with its own 60.
  EXPECT_EQ(Timeouts(), 0);
}

TEST_F(FaultRow13, AWaiterIsKilledAndAStrictBarrierFailsForAllAndNamesIt) {
  KillOneOfThree(3, 5);  // The lease is 2 s.
  EXPECT_EQ(late_end_.code, "DEADLINE_EXCEEDED") << late_end_.text;
  EXPECT_EQ(stays_end_.code, "DEADLINE_EXCEEDED") << stays_end_.text;
  EXPECT_THAT(stays_end_.text, AllOf(HasSubstr("2 of 3 arrived"), HasSubstr("actor-2 (gone)")));
  EXPECT_EQ(late_end_.text, stays_end_.text);
  EXPECT_EQ(Timeouts(), 1);
}

TEST_F(FaultRow14, ADuplicateIsToldTheSameALateArrivalIsRefusedAndNobodyIsCountedTwice) {
  BarrierMember one(cluster_, {"b:1:2:60", "b:1:2:60"});
  WaitForWaiters(1);
  BarrierMember two(cluster_, {"b:1:2:60"});
  const std::string both = absl::StrCat(one.id(), " ", two.id());
  EXPECT_EQ(two.Ended(1).text, both);
  for (size_t arrival : {1, 2}) {
    EXPECT_EQ(one.Ended(arrival).code, "OK");
    EXPECT_EQ(one.Ended(arrival).text, both);
  }
  BarrierMember late(cluster_, {"b:1:2:60", "b:2:2:60"});
  EXPECT_EQ(late.Ended(1).code, "FAILED_PRECONDITION");
  EXPECT_THAT(late.Ended(1).text, HasSubstr("generation 1 has passed"));
  WaitForWaiters(1);  // Generation 2 takes two, as ever.
  BarrierMember last(cluster_, {"b:2:2:60"});
  EXPECT_EQ(last.Ended(1).text, absl::StrCat(late.id(), " ", last.id()));
  EXPECT_EQ(Scrape(cluster_.http_port(),
                   R"(skein_coordinator_refusals_total{call="ArriveAtBarrier",code="failed_precondition"})"),
            1);
}

}  // namespace
}  // namespace skein
