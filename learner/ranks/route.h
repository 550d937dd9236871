// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>

namespace skein {

// Numeric addresses of both ends of the route from this node to another.
struct Route {
  std::string local, remote;
};

// The route to `host` (a name or numeric address). Sends nothing. nullopt: no such host, or no route to it.
std::optional<Route> FindRoute(const std::string& host, int port);

}  // namespace skein
