// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace skein {

// Splits "host:port", "[v6]:port" or ":port". InvalidArgument: not of this form.
struct HostPort {
  std::string host;
  int port = 0;
};
absl::StatusOr<HostPort> ParseHostPort(const std::string& address);
// Splits a list "host:port,host:port". InvalidArgument: the list is empty, or an entry has no host or no port.
absl::StatusOr<std::vector<std::string>> ParseAddresses(const std::string& list);
std::string FirstAddress(const std::string& list);  // The text before the first comma.
std::string JoinHostPort(const std::string& host, int port);

bool IsLoopback(const std::string& host);
bool IsWildcard(const std::string& host);  // "", "0.0.0.0", "::", "[::]"

// Checks whether a server could listen there now; an empty host means every interface. Port 0 is always free.
// Unavailable: "port P is in use", the host does not resolve, or the address is not of this machine.
absl::Status CheckCanListen(const HostPort& address);

}  // namespace skein
