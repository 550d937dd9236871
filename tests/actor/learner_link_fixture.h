// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <utility>

#include "actor/learner_link.h"
#include "gtest/gtest.h"
#include "prometheus/registry.h"
#include "tests/testing/wait_until.h"

namespace skein {

// A link on a thread of its own, and the outbox that the test works on in the place of runners.
class LearnerLinkTest : public testing::Test {
 protected:
  LearnerLinkTest() {
    options_.runners = 2;
    options_.env_spec.set_env_id("Sample-v0");
    options_.outbox = &outbox_;
    options_.policies = &policies_;
    options_.metrics = &metrics_;
    options_.on_policy = [](uint64_t, const v1::PolicySnapshot&) { return absl::OkStatus(); };
  }
  ~LearnerLinkTest() override {
    if (!thread_.joinable()) return;
    link_->Abort();
    thread_.join();
  }

  LearnerLink::Target TargetAt(int port, uint64_t generation = 1) const {
    return {"127.0.0.1:" + std::to_string(port), "run", "ada", generation};
  }
  void StartLink(const LearnerLink::Target& target) {
    link_ = std::make_unique<LearnerLink>(options_);
    link_->SetTarget(target);
    thread_ = std::thread([this] {
      status_ = link_->Run();
      ended_ = true;
    });
  }
  // What Run returned; it must do so by itself.
  absl::Status End() {
    WaitUntil([this] { return ended_.load(); });
    link_->Abort();
    thread_.join();
    return status_;
  }
  // Serves the next `count` tickets as a runner would: ten env steps each.
  void Work(int count) {
    for (int i = 0; i < count; ++i) {
      const auto held = outbox_.TakeTicket();
      ASSERT_TRUE(held);
      Fragment fragment{.header = {}, .block = std::make_shared<const std::string>()};
      fragment.header.set_ticket_id(held->ticket.id());
      fragment.header.set_steps(5);
      fragment.header.set_group_envs(2);
      outbox_.PutFragment(std::move(fragment));
    }
  }

  prometheus::Registry registry_;
  ActorMetrics metrics_{&registry_, 2};
  Outbox outbox_;
  PolicyStore policies_;
  LearnerLink::Options options_;
  std::unique_ptr<LearnerLink> link_;
  std::atomic<bool> ended_{false};
  absl::Status status_;
  std::thread thread_;
};

}  // namespace skein
