// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "absl/status/statusor.h"

namespace skein {

// Rules by which a coordinator checks and completes the addresses that members announce.
struct AddressRules {
  // The host of members that call over loopback without a host of their own, since they run on the coordinator's node.
  // Empty: the loopback address.
  std::string announced_host;
  bool foreign_metrics = false;  // Metrics may be at another host than the member calls from, e.g. behind NAT.
};

// The host in a gRPC peer name: "ipv4:10.0.0.7:4711", "ipv6:[fd00::7]:4711", or the same with %5B and %5D. An
// IPv4-mapped IPv6 address is returned as IPv4. Peers without an address (inproc:, unix:) are on this node:
// "127.0.0.1".
std::string HostOfPeer(const std::string& peer);

// `address` (host:port) with an empty or wildcard host replaced by `host`; an empty address stays empty.
// InvalidArgument: `address` is not host:port, or its port is 0.
absl::StatusOr<std::string> CompleteAddress(const std::string& address, const std::string& host);

// `address` (host:port) with the host replaced by `peer_host` where they differ, so that a member cannot have
// Prometheus call another host. Members on this node (loopback) are believed: their own address says nothing. An empty
// address stays empty. REQUIRES: as CompleteAddress() returns it.
std::string AddressOfPeer(const std::string& address, const std::string& peer_host);

}  // namespace skein
