// SPDX-License-Identifier: Apache-2.0
#include "actor/reachable_address.h"

#include "gtest/gtest.h"

namespace skein {
namespace {

TEST(ReachableAddress, KeepsAnAddressThatMeansTheSameEverywhere) {
  EXPECT_EQ(ReachableAddress("10.0.0.5:7000", "10.0.0.1:7070"), "10.0.0.5:7000");
  EXPECT_EQ(ReachableAddress("gpu-node:7000", "127.0.0.1:7070"), "gpu-node:7000");
  EXPECT_EQ(ReachableAddress("[fd00::5]:7000", "head:7070"), "[fd00::5]:7000");
}

TEST(ReachableAddress, LoopbackMeansTheCoordinatorsHost) {
  for (const char* learner : {"127.0.0.1:7000", "127.1.2.3:7000", "localhost:7000", "[::1]:7000", ":7000"}) {
    EXPECT_EQ(ReachableAddress(learner, "10.0.0.1:7070"), "10.0.0.1:7000") << learner;
    EXPECT_EQ(ReachableAddress(learner, "[fd00::1]:7070"), "[fd00::1]:7000") << learner;
    EXPECT_EQ(ReachableAddress(learner, "127.0.0.1:7070"), "127.0.0.1:7000") << learner;
  }
}

TEST(ReachableAddress, LeavesWhatIsNoAddressAlone) {
  EXPECT_EQ(ReachableAddress("", "10.0.0.1:7070"), "");
  EXPECT_EQ(ReachableAddress("nonsense", "10.0.0.1:7070"), "nonsense");
  EXPECT_EQ(ReachableAddress("127.0.0.1:7000", "nonsense"), "127.0.0.1:7000");
}

TEST(MetricsAddress, IsTheAnnouncedHostWhateverElseIsKnown) {
  EXPECT_EQ(MetricsAddress("127.0.0.1:0", 9100, "node7", "10.0.0.1:7070"), "node7:9100");
  EXPECT_EQ(MetricsAddress("0.0.0.0:0", 9100, "fd00::7", "127.0.0.1:7070"), "[fd00::7]:9100");
}

TEST(MetricsAddress, LeavesTheHostToTheCoordinatorWhereAllInterfacesAreServed) {
  for (const char* listen : {"0.0.0.0:0", "[::]:0", ":0"}) {
    EXPECT_EQ(MetricsAddress(listen, 9100, "", "10.0.0.1:7070"), ":9100") << listen;
    EXPECT_EQ(MetricsAddress(listen, 9100, "", "127.0.0.1:7070"), ":9100") << listen;
  }
}

TEST(MetricsAddress, IsTheHostItIsServedOn) {
  EXPECT_EQ(MetricsAddress("10.0.0.7:0", 9100, "", "10.0.0.1:7070"), "10.0.0.7:9100");
  EXPECT_EQ(MetricsAddress("127.0.0.1:0", 9100, "", "127.0.0.1:7070"), "127.0.0.1:9100");
  EXPECT_EQ(MetricsAddress("[::1]:0", 9100, "", "localhost:7070"), "[::1]:9100");
}

TEST(MetricsAddress, IsNoneOnTheLoopbackWithACoordinatorElsewhere) {
  EXPECT_EQ(MetricsAddress("127.0.0.1:0", 9100, "", "10.0.0.1:7070"), "");
  EXPECT_EQ(MetricsAddress("localhost:0", 9100, "", "head:7070"), "");
  EXPECT_EQ(MetricsAddress("[::1]:9100", 9100, "", "[fd00::1]:7070"), "");
}

}  // namespace
}  // namespace skein
