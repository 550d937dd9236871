// SPDX-License-Identifier: Apache-2.0
// Rows 15 to 18: the way between an actor and its learner is cut, half open, blocked or slow, while its heartbeats
// pass.
#include <algorithm>
#include <csignal>

#include "base/net/host_port.h"
#include "base/process/clock.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/faults/live_members.h"
#include "tests/testing/coordinator_relay.h"
#include "tests/testing/fault_proxy.h"
#include "tests/testing/scrape.h"
#include "tests/testing/wait_until.h"

namespace skein {
namespace {

using testing::HasSubstr;
using Direction = FaultProxy::Direction;

constexpr double kKeepalive = 10 + 5;  // s until a silent connection is given up: gRPC's keepalive time and timeout.
constexpr double kLoaded = 2;          // s that a loaded machine may be late.
constexpr double kMegabytes = 1 << 20;
constexpr int kRunners = 1;
constexpr int kCap = 4 * (kRunners + 1);  // Finished fragments that an actor keeps at most.

double Now() { return absl::ToDoubleSeconds(MonotonicNow()); }

// Resident bytes of a member, as its last heartbeat said.
double MemoryOf(const Cluster& cluster, const std::string& id) {
  const auto status = cluster.Status();
  const v1::MemberStatus* member = status.ok() ? FindMember(*status, id) : nullptr;
  return member == nullptr ? 0 : static_cast<double>(member->report().resident_bytes());
}

// An actor whose data, and only they, go through a proxy.
class ActorBehindAProxy {
 public:
  explicit ActorBehindAProxy(const Cluster& cluster, const std::vector<std::string>& environment = {})
      : proxy_(cluster.learner_address()),
        relay_(cluster.address(), proxy_.address()),
        process_(cluster.StartActor(relay_.address(), environment, kRunners)),
        id_(process_->WaitForOutput("actor joined member=(\\S+)")),
        metrics_port_(
            ParseHostPort(FirstMatch(process_->Output(), "actor joined .*metrics=(\\S+)")).value_or(HostPort()).port) {}

  FaultProxy& proxy() { return proxy_; }
  Running& process() { return *process_; }
  const std::string& id() const { return id_; }
  double Metric(const std::string& series) const { return Scrape(metrics_port_, series); }
  // How many of its fragments had `result` after `seconds`.
  int FragmentsWith(const std::vector<HistoryEvent>& history, const std::string& result, double seconds = 0) const {
    return static_cast<int>(std::count_if(history.begin(), history.end(), [&](const HistoryEvent& event) {
      return event.event == "batch" && event.Text("actor") == id_ && event.Text("result") == result &&
             event.seconds > seconds;
    }));
  }
  // As its last heartbeat said.
  double Memory(const Cluster& cluster) const { return MemoryOf(cluster, id_); }
  // Until the learner has accepted something from it after `seconds`.
  bool WaitUntilItIsTrainedOn(const Cluster& cluster, double seconds) const {
    return WaitUntil([&] { return FragmentsWith(cluster.History(), "accepted", seconds) > 0; }, absl::Minutes(1),
                     absl::Milliseconds(200));
  }

 private:
  FaultProxy proxy_;
  CoordinatorRelay relay_;
  std::unique_ptr<Running> process_;
  std::string id_;
  int metrics_port_;
};

// Seconds between attempts to connect to `proxy` after `begin`.
std::vector<double> Pauses(const FaultProxy& proxy, double begin) {
  std::vector<double> pauses;
  double last = 0;
  for (const absl::Duration time : proxy.connection_times()) {
    const double seconds = absl::ToDoubleSeconds(time);
    if (seconds < begin) continue;
    if (last > 0) pauses.push_back(seconds - last);
    last = seconds;
  }
  return pauses;
}

// Steps of 0.5 ms that need no processor: a fragment, 128 steps of four environments, takes a quarter of a second, so
// that an actor is in the middle of one at almost any time.
const std::vector<std::string>& Fragments() {
  static const auto* const overrides =
      new std::vector<std::string>{kEndless, "env.id=Latency-v0", "env.latency.step_ms=0.5", "ppo.epochs=1"};
  return *overrides;
}

class NetworkFaults : public testing::Test {
 protected:
  explicit NetworkFaults(const std::vector<std::string>& overrides = Fragments()) : cluster_(overrides) {
    cluster_.StartCoordinator();
    cluster_.StartLearner();
  }
  Cluster cluster_;
};

class FaultRow15 : public NetworkFaults {};
class FaultRow16 : public NetworkFaults {};
class FaultRow17 : public NetworkFaults {};

TEST_F(FaultRow15, AnActorIsCutOffFromItsLearnerForFifteenSecondsAndComesBack) {
  ActorBehindAProxy actor(cluster_);
  const auto other = cluster_.StartActor();
  ASSERT_TRUE(actor.WaitUntilItIsTrainedOn(cluster_, 0));
  ASSERT_TRUE(cluster_.WaitForStatus(LiveActors(2)));
  const double memory_before = actor.Memory(cluster_);
  const uint64_t env_steps = EnvSteps(cluster_);
  // Between two iterations it has no ticket, and would have nothing to hold on to.
  actor.proxy().Swallow(Direction::kToServer);
  ASSERT_TRUE(WaitUntil([&] { return actor.Metric("skein_actor_queued_batches") >= 1; }, absl::Seconds(10),
                        absl::Milliseconds(20)));
  const double cut = Now();
  actor.proxy().Swallow(Direction::kBoth);
  // It gives the connection up and holds on to what it has; the other one does the work meanwhile.
  double most_queued = 0, most_memory = 0;
  bool noticed = false;
  ASSERT_TRUE(WaitUntil(
      [&] {
        most_queued = std::max(most_queued, actor.Metric("skein_actor_queued_batches"));
        most_memory = std::max(most_memory, actor.Memory(cluster_));
        noticed = noticed || actor.Metric("skein_actor_reconnections_total") >= 1;
        return noticed && Now() >= cut + 15;
      },
      absl::Seconds(kKeepalive + kLoaded), absl::Milliseconds(100)));
  EXPECT_GE(most_queued, 1);
  EXPECT_LE(most_queued, kCap);
  EXPECT_LE(most_memory, memory_before + 16 * kMegabytes);
  EXPECT_GE(EnvSteps(cluster_), env_steps + 4096);
  EXPECT_FALSE(actor.process().ended());

  const double healed = Now();
  actor.proxy().Heal();
  ASSERT_TRUE(actor.WaitUntilItIsTrainedOn(cluster_, healed));
  // What it had begun was granted to the other one long ago: stale, as both sides count it.
  const std::vector<HistoryEvent> history = cluster_.History();
  EXPECT_GE(actor.FragmentsWith(history, "stale", healed), 1);
  EXPECT_GE(actor.Metric(R"(skein_actor_receipts_total{result="stale"})"), 1);
  EXPECT_EQ(actor.FragmentsWith(history, "rejected"), 0);
  EXPECT_EQ(actor.FragmentsWith(history, "duplicate"), 0);
  // It had two tickets: no more than its buffer takes.
  EXPECT_EQ(actor.Metric("skein_actor_dropped_batches_total"), 0);
  const auto status = cluster_.Status();
  ASSERT_TRUE(status.ok()) << status.status();
  EXPECT_EQ(status->expirations(), 0u);
  EXPECT_GT(status->progress().account().stale(), 0u);
}

// Fragments of 8,192 steps, more than 1 MB: at 256 kB/s an actor's greetings arrive at once, and a fragment does not
// for seconds.
class FaultRow15LargeFragments : public NetworkFaults {
 protected:
  static constexpr uint64_t kFragment = 8192 * 4, kIteration = 8 * kFragment;
  FaultRow15LargeFragments()
      : NetworkFaults({kEndless, "sync.mode=async", "rollout.num_envs=32", "rollout.steps_per_iteration=262144",
                       "rollout.fragment_steps=8192", "ppo.epochs=1", "ppo.minibatch_size=262144"}) {}
};

// An actor gets no more tickets over one connection than it may hold, so a single cut does not fill its outbox. A link
// that breaks again and again does: each connection brings tickets, and none lasts until a fragment is delivered.
TEST_F(FaultRow15LargeFragments, AnActorWhoseLinkBreaksAgainAndAgainDropsTheOldestAndCountsThem) {
  constexpr int kDropped = 3, kTickets = kRunners + 1;
  ActorBehindAProxy actor(cluster_);
  const auto other = cluster_.StartActor();
  ASSERT_TRUE(actor.WaitUntilItIsTrainedOn(cluster_, 0));
  ASSERT_TRUE(cluster_.WaitForStatus(LiveActors(2)));
  const double memory_before = actor.Memory(cluster_);
  const double begin = Now();
  const auto dropped = [&] { return actor.Metric("skein_actor_dropped_batches_total"); };
  double most_queued = 0, most_memory = 0;
  while (dropped() < kDropped) {
    ASSERT_LT(Now(), begin + 90) << most_queued << " fragments were queued at most";
    // Away until the other one has done what it held.
    actor.proxy().Refuse();
    actor.proxy().Cut();
    ASSERT_TRUE(cluster_.WaitForStatus(TrainedAtLeast(EnvSteps(cluster_) + 2 * kIteration)));
    // There again, until it has served its tickets.
    const double finished = actor.Metric("skein_actor_fragments_total"), back = Now();
    actor.proxy().Heal();
    actor.proxy().LimitRate(Direction::kToServer, 256'000);
    ASSERT_TRUE(WaitUntil(
        [&] {
          most_queued = std::max(most_queued, actor.Metric("skein_actor_queued_batches"));
          most_memory = std::max(most_memory, actor.Memory(cluster_));
          return actor.Metric("skein_actor_fragments_total") >= finished + kTickets || Now() >= back + 3;
        },
        absl::Seconds(20), absl::Milliseconds(20)));
  }
  EXPECT_EQ(most_queued, kCap);
  EXPECT_LE(most_memory, memory_before + 64 * kMegabytes);

  const double healed = Now();
  actor.proxy().Cut();
  actor.proxy().Heal();
  ASSERT_TRUE(actor.WaitUntilItIsTrainedOn(cluster_, healed));
  // All that was kept arrives, and all but what the last connection brought was granted to the other one long ago.
  const std::vector<HistoryEvent> history = cluster_.History();
  EXPECT_GE(actor.FragmentsWith(history, "stale", healed), kCap - kTickets);
  EXPECT_GE(actor.Metric(R"(skein_actor_receipts_total{result="stale"})"), kCap - kTickets);
  EXPECT_EQ(actor.FragmentsWith(history, "rejected"), 0);
  EXPECT_EQ(actor.FragmentsWith(history, "duplicate"), 0);
  // What never arrived, and nothing else, is lost in the run's account. (One that was dropped on its way may arrive.)
  const auto most_lost = static_cast<uint64_t>(dropped()) * kFragment;
  actor.process().Signal(SIGTERM);
  EXPECT_EQ(actor.process().WaitForEnd(), 0);
  uint64_t arrived = 0;
  for (const HistoryEvent& event : cluster_.History()) {
    if (event.event == "batch" && event.Text("actor") == actor.id()) arrived += event.Number("env_steps");
  }
  const uint64_t lost = StepsAtTheEnd(actor.process()) - arrived;
  EXPECT_GE(lost, kFragment);
  EXPECT_LE(lost, most_lost);
  EXPECT_TRUE(cluster_.WaitForStatus(
      [&](const v1::StatusResponse& status) { return status.progress().account().lost() == lost; }));
  const auto status = cluster_.Status();
  ASSERT_TRUE(status.ok()) << status.status();
  EXPECT_EQ(status->expirations(), 0u);
}

TEST_F(FaultRow15, TheLinkOfAnActorsNodeIsDown) {
  const Ended ended = RunToEnd("tests/faults/link_down.sh", {cluster_.history_variable()}, absl::Minutes(4));
  if (ended.code == 77) GTEST_SKIP() << ended.err;
  EXPECT_EQ(ended.code, 0) << ended.out << ended.err;
}

TEST_F(FaultRow16, AHalfOpenConnectionIsNoticedWhileWritingAndWhileWaiting) {
  ActorBehindAProxy writes(cluster_), waits(cluster_);
  ASSERT_TRUE(writes.WaitUntilItIsTrainedOn(cluster_, 0));
  ASSERT_TRUE(waits.WaitUntilItIsTrainedOn(cluster_, 0));
  const double begin = Now();
  writes.proxy().Swallow(Direction::kToServer);  // What it writes vanishes.
  waits.proxy().Swallow(Direction::kToClient);   // It hears of nothing any more, and has nothing to do.
  for (ActorBehindAProxy* actor : {&writes, &waits}) {
    ASSERT_TRUE(WaitUntil([&] { return actor->Metric("skein_actor_reconnections_total") >= 1; },
                          absl::Seconds(kKeepalive + kLoaded), absl::Milliseconds(50)));
    EXPECT_LE(Now() - begin, kKeepalive + kLoaded);
    EXPECT_THAT(actor->process().Output(), HasSubstr("broke: "));
  }
  // Attempts go on, further and further apart: within 0.05, 0.1, 0.2, ... 2 s, each after less or more by chance.
  for (ActorBehindAProxy* actor : {&writes, &waits}) {
    actor->proxy().Refuse();
    actor->proxy().Cut();
  }
  const double refusing = Now();
  ASSERT_TRUE(WaitUntil([&] { return Now() >= refusing + 8; }, absl::Seconds(20), absl::Milliseconds(50)));
  const std::vector<double> one = Pauses(writes.proxy(), refusing), another = Pauses(waits.proxy(), refusing);
  for (const std::vector<double>& pauses : {one, another}) {
    ASSERT_GE(pauses.size(), 3u);   // At 2 s each there are four attempts.
    EXPECT_LE(pauses.size(), 40u);  // 40 in 8 s is not as fast as it can.
    EXPECT_GE(*std::max_element(pauses.begin(), pauses.end()), 0.4);
    EXPECT_LE(*std::max_element(pauses.begin(), pauses.end()), 2 + kLoaded);
  }
  EXPECT_NE(one, another);  // By chance: two that break at the same time do not come back at the same time for ever.
  const double healed = Now();
  for (ActorBehindAProxy* actor : {&writes, &waits}) actor->proxy().Heal();
  EXPECT_TRUE(writes.WaitUntilItIsTrainedOn(cluster_, healed));
  EXPECT_TRUE(waits.WaitUntilItIsTrainedOn(cluster_, healed));
}

TEST_F(FaultRow17, HeartbeatsPassAndDataDoNotSoTheMemberIsDegraded) {
  ActorBehindAProxy actor(cluster_);
  const auto other = cluster_.StartActor();
  ASSERT_TRUE(actor.WaitUntilItIsTrainedOn(cluster_, 0));
  ASSERT_TRUE(cluster_.WaitForStatus(LiveActors(2)));
  const auto degraded = [&](const v1::StatusResponse& status) {
    const v1::MemberStatus* member = FindMember(status, actor.id());
    return member != nullptr && member->degraded();
  };
  EXPECT_EQ(Scrape(cluster_.http_port(), "skein_coordinator_degraded_members"), 0);
  actor.proxy().Swallow(Direction::kBoth);
  ASSERT_TRUE(cluster_.WaitForStatus(degraded));
  const auto status = cluster_.Status();
  ASSERT_TRUE(status.ok()) << status.status();
  const v1::MemberStatus* member = FindMember(*status, actor.id());
  ASSERT_NE(member, nullptr);
  EXPECT_GT(member->report().undelivered_seconds(), 2);  // The lease.
  EXPECT_LT(member->seconds_since_heartbeat(), 2);
  EXPECT_EQ(status->expirations(), 0u);
  EXPECT_TRUE(WaitUntil([&] { return Scrape(cluster_.http_port(), "skein_coordinator_degraded_members") == 1; },
                        absl::Seconds(20), absl::Milliseconds(50)));
  EXPECT_GT(actor.Metric("skein_actor_undelivered_seconds"), 2);
  const Ended people = RunToEnd("skein", {"status", "--address", cluster_.address()});
  EXPECT_THAT(people.out, testing::ContainsRegex(actor.id() + " .* degraded "));
  EXPECT_TRUE(cluster_.WaitForStatus(TrainedAtLeast(status->progress().env_steps() + 4096)));  // By the other one.

  actor.proxy().Heal();
  EXPECT_TRUE(cluster_.WaitForStatus([&](const v1::StatusResponse& now) { return !degraded(now); }));
  EXPECT_TRUE(WaitUntil([&] { return Scrape(cluster_.http_port(), "skein_coordinator_degraded_members") == 0; },
                        absl::Seconds(20), absl::Milliseconds(50)));
}

// Steps of 1 ms that need no processor: an actor steps 1,000 env steps a second. 56 env groups in fragments of 16
// steps, 64 ms: eight actors do seven of each iteration one after the other, seven do eight. Policies of some 270 kB
// come with every iteration: more than 1 Mbit/s has room for.
class SlowLink : public NetworkFaults {
 protected:
  explicit SlowLink(const std::string& mode)
      : NetworkFaults({kEndless, "env.id=Latency-v0", "env.latency.step_ms=1", "rollout.num_envs=224",
                       "rollout.steps_per_iteration=3584", "ppo.epochs=1", "ppo.minibatch_size=896",
                       "model.hidden=[256, 256]", "sync.mode=" + mode}) {}

  // Puts one of eight actors behind 1 Mbit/s, which must leave 7/8 of the rate.
  void ExpectSevenEighths() {
    ActorBehindAProxy slow(cluster_);
    std::vector<std::unique_ptr<Running>> others;
    for (int i = 0; i < 7; ++i) others.push_back(cluster_.StartActor());
    ASSERT_TRUE(cluster_.WaitForStatus([](const v1::StatusResponse& status) {
      return LiveMembers(status, "actor") == 8 && status.progress().env_steps() > 10000;
    }));
    double before = BestRate(cluster_, absl::Seconds(4), 1e9, absl::Seconds(8));
    const double learner_memory = MemoryOf(cluster_, "learner-0");
    double most_queued = 0, rate = 0;
    // What else the machine does changes between two looks, so each try compares with a rate of its own.
    for (int attempt = 0; attempt < 4 && rate < before * 7 / 8; ++attempt) {
      if (attempt > 0) {
        slow.proxy().LimitRate(Direction::kBoth, 0);
        before = BestRate(cluster_, absl::Seconds(4), 0, absl::ZeroDuration());
      }
      slow.proxy().LimitRate(Direction::kBoth, 125'000);  // 1 Mbit/s.
      const double end = Now() + 20;
      do {
        rate = BestRate(cluster_, absl::Seconds(4), 0, absl::ZeroDuration());
        most_queued = std::max(most_queued, slow.Metric("skein_actor_queued_batches"));
      } while (rate < before * 7 / 8 && Now() < end);
    }
    EXPECT_GE(rate, before * 7 / 8);
    EXPECT_LE(most_queued, kCap);
    // A policy is sent when the one before has left, and those in between are left out: nothing piles up for this
    // stream.
    EXPECT_LE(MemoryOf(cluster_, "learner-0"), learner_memory + 16 * kMegabytes);
    EXPECT_FALSE(slow.process().ended());
  }
};

class FaultRow18 : public SlowLink {
 protected:
  FaultRow18() : SlowLink("async") {}
};

TEST_F(FaultRow18, OneOfEightActorsBehindASlowLinkCostsItsShareAtMost) { ExpectSevenEighths(); }

// On policy all wait for each other, and the others do its work.
class FaultRow18OnPolicy : public SlowLink {
 protected:
  FaultRow18OnPolicy() : SlowLink("on_policy") {}
};

TEST_F(FaultRow18OnPolicy, TheOthersDoTheWorkOfOneBehindASlowLink) { ExpectSevenEighths(); }

}  // namespace
}  // namespace skein
