// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <optional>
#include <vector>

#include "base/net/grpc_transport.h"
#include "gtest/gtest.h"
#include "learner/collect/collector.h"
#include "prometheus/registry.h"
#include "tests/learner/connections.h"
#include "tests/learner/sample_fragment.h"
#include "tests/learner/sample_metrics.h"

namespace skein {

inline Collector::Options WithFragments(Collector::Options options, uint32_t fragments) {
  options.fragments_per_group = fragments;
  return options;
}

// Four environments in two groups of two, two steps each: eight steps an iteration.
class CollectorTest : public testing::Test {
 protected:
  explicit CollectorTest(const Collector::Options& options = MakeOptions()) : collector_(options, &metrics_) {}
  static Collector::Options MakeOptions() {
    Collector::Options options;
    options.run_id = "run";
    options.shape = MakeSampleShape({});
    options.share_envs = 4;
    return options;
  }
  v1::Hello MakeHello(const ConnectionId& actor, uint32_t runners = 1) {
    v1::Hello hello;
    hello.set_protocol_major(kProtocolMajor);
    hello.set_run_id("run");
    hello.set_actor_id(actor.actor_id);
    hello.set_generation(actor.generation);
    hello.set_ticket_credits(runners);
    hello.set_runners(runners);
    *hello.mutable_env_spec() = MakeOptions().shape.spec;
    return hello;
  }
  void Open(const ConnectionId& actor, uint32_t runners = 1) {
    ASSERT_TRUE(collector_.Open(MakeHello(actor, runners)).ok());
  }

  // The fragment that serves `ticket` as the actor's next one; its numbers begin at `offset`.
  SampleFragment Serve(const ConnectionId& actor, const v1::Ticket& ticket, float offset = 0,
                       const std::vector<SampleEnd>& ends = {}) {
    SampleFragment fragment = MakeSampleFragment(MakeOptions().shape, offset, ends);
    Work& work = works_[actor];
    work.collected += kFragmentSteps;
    fragment.header.set_sequence(++work.sequence);
    fragment.header.set_env_steps_collected(work.collected);
    fragment.header.set_ticket_id(ticket.id());
    fragment.header.set_first_env(ticket.first_env());
    fragment.header.set_policy_version(ticket.policy_version());
    return fragment;
  }
  v1::ReceiptResult Deliver(const ConnectionId& actor, const SampleFragment& fragment) {
    const v1::Receipt receipt = collector_.Receive(actor, ReceivedFragment(fragment).frame(), 1);
    EXPECT_EQ(receipt.sequence(), fragment.header.sequence());
    EXPECT_EQ(receipt.message().empty(), receipt.result() == v1::RECEIPT_RESULT_ACCEPTED);
    ExpectBalance();
    return receipt.result();
  }
  // Serves all that is granted until nothing more is.
  void ServeIteration(float offset = 0) {
    for (auto grants = collector_.TakeGrants(); !grants.empty(); grants = collector_.TakeGrants()) {
      for (const auto& [actor, ticket] : grants) {
        EXPECT_EQ(Deliver(actor, Serve(actor, ticket, offset)), v1::RECEIPT_RESULT_ACCEPTED);
      }
    }
  }
  // The ticket of group `group` among those that can be granted now; the others are dropped by ada's connecting anew.
  v1::Ticket TakeTicket(uint32_t group) {
    Open(kAda, 2);
    for (const auto& [actor, ticket] : collector_.TakeGrants()) {
      if (ticket.first_env() == 2 * group) return ticket;
    }
    ADD_FAILURE() << "no ticket of group " << group;
    return {};
  }
  void ServeGroup(uint32_t group, float offset) {
    ASSERT_EQ(Deliver(kAda, Serve(kAda, TakeTicket(group), offset)), v1::RECEIPT_RESULT_ACCEPTED);
  }
  std::optional<Collector::Iteration> Take() { return collector_.WaitForIteration(absl::ZeroDuration()); }
  void ExpectBalance() {
    const v1::StepAccount a = collector_.account();
    EXPECT_EQ(a.collected(), a.trained() + a.stale() + a.rejected() + a.lost() + a.pending());
    EXPECT_EQ(MetricValue(registry_, "skein_learner_env_steps_imbalance"), 0);
  }

  struct Work {
    uint64_t sequence = 0, collected = 0;
  };
  std::map<ConnectionId, Work> works_;
  prometheus::Registry registry_;
  LearnerMetrics metrics_{&registry_};
  Collector collector_;
};

}  // namespace skein
