// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "absl/status/statusor.h"

namespace skein {

// The host in a gRPC peer name: "ipv4:10.0.0.7:4711", "ipv6:[fd00::7]:4711", or the same with %5B and %5D. An
// IPv4-mapped IPv6 address is returned as IPv4. Peers without an address (inproc:, unix:) are on this node:
// "127.0.0.1".
std::string HostOfPeer(const std::string& peer);

// `address` (host:port) with an empty or wildcard host replaced by `host`; an empty address stays empty.
// InvalidArgument: `address` is not host:port, or its port is 0.
absl::StatusOr<std::string> CompleteAddress(const std::string& address, const std::string& host);

}  // namespace skein
