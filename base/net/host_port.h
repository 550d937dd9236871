// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace skein {

// Splits "host:port", "[v6]:port" or ":port". InvalidArgument says what is wrong.
struct HostPort {
  std::string host;
  int port = 0;
};
absl::StatusOr<HostPort> ParseHostPort(const std::string& address);
// Of a list "host:port,host:port": each of them. InvalidArgument: none, or one of them without host or port.
absl::StatusOr<std::vector<std::string>> ParseAddresses(const std::string& list);
std::string FirstAddress(const std::string& list);  // What stands before the first comma.
std::string JoinHostPort(const std::string& host, int port);

bool IsLoopback(const std::string& host);
bool IsWildcard(const std::string& host);  // "", "0.0.0.0", "::", "[::]"

// Whether a server could listen there now; an empty host stands for every interface. Port 0 is always free.
// Unavailable: "port P is in use", a host that does not resolve, an address that is not of this machine.
absl::Status CheckCanListen(const HostPort& address);

}  // namespace skein
