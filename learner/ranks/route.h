// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>

namespace skein {

// Numeric addresses of both ends of the way from this node to another.
struct Route {
  std::string local, remote;
};

// Which of this node's addresses reaches `host` (a name or a number). Sends nothing. nullopt: no such host, no way.
std::optional<Route> FindRoute(const std::string& host, int port);

}  // namespace skein
