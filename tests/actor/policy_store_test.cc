// SPDX-License-Identifier: Apache-2.0
#include "actor/policy_store.h"

#include <thread>

#include "gtest/gtest.h"
#include "tests/policy/make_policy.h"

namespace skein {
namespace {

std::shared_ptr<const Policy> SomePolicy(uint64_t version) {
  PolicySpec spec;
  spec.obs_size = 1;
  spec.action_size = 1;
  spec.hidden = {1};
  return RandomPolicy(version, spec);
}

class PolicyStoreTest : public testing::Test {
 protected:
  PolicyStoreTest() { store_.BeginStream(1); }
  // Version that a ticket for `version` gets; 0 if none.
  uint64_t Get(uint64_t stream, uint64_t version) {
    auto policy = store_.WaitFor(stream, version);
    return policy.ok() ? (*policy)->version() : 0;
  }
  PolicyStore store_;
};

TEST_F(PolicyStoreTest, GivesTheVersionThatIsAskedForOrTheNewest) {
  EXPECT_EQ(store_.newest_version(), 0u);
  for (uint64_t version : {1, 2, 3}) store_.Put(1, SomePolicy(version));
  for (uint64_t version : {1, 2, 3}) EXPECT_EQ(Get(1, version), version);
  EXPECT_EQ(Get(1, 0), 3u);
  EXPECT_EQ(store_.newest_version(), 3u);
}

TEST_F(PolicyStoreTest, AVersionThatIsGoneIsNotFound) {
  for (uint64_t version : {1, 2, 3, 4, 6}) store_.Put(1, SomePolicy(version));
  EXPECT_TRUE(absl::IsNotFound(store_.WaitFor(1, 1).status()));
  EXPECT_TRUE(absl::IsNotFound(store_.WaitFor(1, 5).status()));  // Skipped.
  EXPECT_EQ(Get(1, 4), 4u);
}

TEST_F(PolicyStoreTest, IgnoresOlderVersionsAndOtherConnections) {
  store_.Put(1, SomePolicy(3));
  store_.Put(1, SomePolicy(3));
  store_.Put(1, SomePolicy(2));
  store_.Put(9, SomePolicy(8));
  EXPECT_EQ(store_.newest_version(), 3u);
  EXPECT_TRUE(absl::IsNotFound(store_.WaitFor(1, 2).status()));
}

TEST_F(PolicyStoreTest, ANewConnectionForgetsAllPolicies) {
  store_.Put(1, SomePolicy(3));
  store_.BeginStream(2);
  EXPECT_EQ(store_.newest_version(), 0u);
  EXPECT_TRUE(absl::IsCancelled(store_.WaitFor(1, 3).status()));
  store_.Put(1, SomePolicy(4));  // Late, over the old connection.
  EXPECT_EQ(store_.newest_version(), 0u);
  store_.Put(2, SomePolicy(1));  // The learner began anew.
  EXPECT_EQ(Get(2, 1), 1u);
}

TEST_F(PolicyStoreTest, WhoWaitsIsWokenByThePolicyTheNextConnectionOrTheEnd) {
  std::thread any([&] { EXPECT_EQ(Get(1, 0), 2u); });
  std::thread exact([&] { EXPECT_EQ(Get(1, 2), 2u); });
  store_.Put(1, SomePolicy(2));
  any.join();
  exact.join();
  std::thread older([&] { EXPECT_TRUE(absl::IsCancelled(store_.WaitFor(1, 3).status())); });
  store_.BeginStream(2);
  older.join();
  std::thread stopped([&] { EXPECT_TRUE(absl::IsCancelled(store_.WaitFor(2, 1).status())); });
  store_.Stop();
  stopped.join();
}

}  // namespace
}  // namespace skein
