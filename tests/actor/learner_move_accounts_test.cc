// SPDX-License-Identifier: Apache-2.0
// An actor that is sent to and fro between two real ranks: every step is in one rank's account, once.
#include <atomic>
#include <chrono>
#include <memory>
#include <thread>
#include <vector>

#include "actor/learner_link.h"
#include "base/net/grpc_transport.h"
#include "gtest/gtest.h"
#include "learner/collect/collector.h"
#include "learner/collect/policy_publisher.h"
#include "learner/collect/service.h"
#include "prometheus/registry.h"
#include "tests/learner/sample_fragment.h"
#include "tests/testing/wait_until.h"

namespace skein {
namespace {

// One rank with four environments in two env groups, which trains on each iteration in no time.
class Rank {
 public:
  explicit Rank(uint32_t rank) {
    Collector::Options options;
    options.run_id = "run";
    options.shape = MakeSampleShape({});
    options.share_envs = 4;
    options.first_env = 4 * rank;
    options.rank = rank;
    options.ranks = 2;
    collector_ = std::make_unique<Collector>(options, &metrics_);
    server_ = *StartGrpcServer("127.0.0.1:0", &service_, &port_);
    service_.Serve("run", collector_.get(), &publisher_);
    trainer_ = std::thread([this] { Train(); });
  }
  ~Rank() {
    service_.Finish();
    publisher_.Finish();
    server_->Shutdown(std::chrono::system_clock::now());
  }

  // Ends training; the account before the accounts are closed.
  v1::StepAccount Stop() {
    collector_->Stop();
    trainer_.join();
    return collector_->account();
  }
  int port() const { return port_; }
  int actors() const { return collector_->actors(); }

 private:
  void Train() {
    for (uint64_t version = 1;; ++version) {
      collector_->OpenIteration(version);
      service_.SendGrants();
      if (!collector_->WaitForIteration(absl::InfiniteDuration())) return;
      collector_->Trained(8);  // Two groups of two environments, two steps each.
    }
  }

  prometheus::Registry registry_;
  LearnerMetrics metrics_{&registry_};
  PolicyPublisher publisher_{&metrics_};
  std::unique_ptr<Collector> collector_;
  LearnerService service_;
  int port_ = 0;
  std::unique_ptr<grpc::Server> server_;
  std::thread trainer_;
};

TEST(LearnerMoveAccounts, EveryStepIsCountedOnceAndNoneIsWasted) {
  Rank first(0), second(1);
  prometheus::Registry registry;
  ActorMetrics metrics(&registry, 2);
  Outbox outbox;
  PolicyStore policies;
  LearnerLink::Options options;
  options.runners = 2;
  options.env_spec = MakeSampleShape({}).spec;
  options.outbox = &outbox;
  options.policies = &policies;
  options.metrics = &metrics;
  options.on_policy = [](uint64_t, const v1::PolicySnapshot&) { return absl::OkStatus(); };
  LearnerLink link(options);
  const auto target = [](const Rank& rank) {
    return LearnerLink::Target{"127.0.0.1:" + std::to_string(rank.port()), "run", "actor-1", 1};
  };
  link.SetTarget(target(first));
  std::thread connection([&] { EXPECT_EQ(link.Run(), absl::OkStatus()); });
  std::vector<std::thread> runners;
  for (int i = 0; i < 2; ++i) {
    runners.emplace_back([&] {
      while (auto held = outbox.TakeTicket()) {
        Fragment fragment = MakeSampleFragment(MakeSampleShape({})).ToFragment();
        fragment.header.set_ticket_id(held->ticket.id());
        fragment.header.set_first_env(held->ticket.first_env());
        fragment.header.set_policy_version(held->ticket.policy_version());
        outbox.PutFragment(std::move(fragment));
      }
    });
  }
  for (int move = 0; move < 10; ++move) {
    const uint64_t before = outbox.env_steps_collected();
    WaitUntil([&] { return outbox.env_steps_collected() >= before + 40; });
    link.SetTarget(target(move % 2 == 0 ? second : first));
    WaitUntil([&] { return (move % 2 == 0 ? first : second).actors() == 0; });
  }
  outbox.Stop();
  for (std::thread& runner : runners) runner.join();
  EXPECT_TRUE(outbox.WaitUntilReceipted(absl::Seconds(20)));
  link.Stop();
  outbox.StopSending();
  connection.join();

  uint64_t collected = 0;
  for (Rank* rank : {&first, &second}) {
    WaitUntil([&] { return rank->actors() == 0; });
    const v1::StepAccount account = rank->Stop();
    EXPECT_GE(account.trained(), 5u * 32);  // At each of five visits about 40 steps, in iterations of 8.
    EXPECT_EQ(account.collected(), account.trained() + account.pending());
    EXPECT_EQ(account.stale() + account.rejected() + account.lost(), 0u);
    collected += account.collected();
  }
  EXPECT_EQ(collected, outbox.env_steps_collected());
}

}  // namespace
}  // namespace skein
