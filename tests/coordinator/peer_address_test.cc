// SPDX-License-Identifier: Apache-2.0
#include "coordinator/peer_address.h"

#include "gtest/gtest.h"

namespace skein {
namespace {

TEST(PeerAddress, HostOfPeerReadsEveryFormOfPeer) {
  EXPECT_EQ(HostOfPeer("ipv4:10.0.0.7:4711"), "10.0.0.7");
  EXPECT_EQ(HostOfPeer("ipv6:[fd00::7]:4711"), "fd00::7");
  EXPECT_EQ(HostOfPeer("ipv6:%5Bfd00::7%5D:4711"), "fd00::7");
  EXPECT_EQ(HostOfPeer("ipv6:%5B::ffff:10.0.0.7%5D:4711"), "10.0.0.7");
  EXPECT_EQ(HostOfPeer("ipv6:%5B::1%5D:4711"), "::1");
  EXPECT_EQ(HostOfPeer("inproc:unset"), "127.0.0.1");
  EXPECT_EQ(HostOfPeer("unix:/run/x"), "127.0.0.1");
}

TEST(PeerAddress, CompleteAddressFillsInWhatIsMissing) {
  EXPECT_EQ(*CompleteAddress("", "10.0.0.7"), "");
  EXPECT_EQ(*CompleteAddress(":7000", "10.0.0.7"), "10.0.0.7:7000");
  EXPECT_EQ(*CompleteAddress("0.0.0.0:7000", "10.0.0.7"), "10.0.0.7:7000");
  EXPECT_EQ(*CompleteAddress("[::]:7000", "fd00::7"), "[fd00::7]:7000");
  EXPECT_EQ(*CompleteAddress("node1:7000", "10.0.0.7"), "node1:7000");
}

TEST(PeerAddress, CompleteAddressRefusesWhatIsNoAddress) {
  EXPECT_EQ(CompleteAddress("node1", "h").status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(CompleteAddress("node1:99999", "h").status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(CompleteAddress(":0", "h").status().code(), absl::StatusCode::kInvalidArgument);
}

TEST(PeerAddress, AMemberElsewhereHasItsMetricsWhereItSpeaksFrom) {
  EXPECT_EQ(AddressOfPeer("10.0.0.7:9100", "10.0.0.7"), "10.0.0.7:9100");
  EXPECT_EQ(AddressOfPeer("169.254.169.254:80", "10.0.0.7"), "10.0.0.7:80");
  EXPECT_EQ(AddressOfPeer("internal.example.org:9100", "10.0.0.7"), "10.0.0.7:9100");
  EXPECT_EQ(AddressOfPeer("127.0.0.1:9100", "fd00::7"), "[fd00::7]:9100");
  EXPECT_EQ(AddressOfPeer("", "10.0.0.7"), "");
  // A process on the coordinator's node calls from the loopback.
  EXPECT_EQ(AddressOfPeer("node1:9100", "127.0.0.1"), "node1:9100");
}

}  // namespace
}  // namespace skein
