// SPDX-License-Identifier: Apache-2.0
#include "learner/ranks/route.h"

#include <netdb.h>
#include <sys/socket.h>
#include <unistd.h>

namespace skein {
namespace {

std::string NumericHost(const sockaddr_storage& address, socklen_t size) {
  char host[NI_MAXHOST];
  const auto* generic = reinterpret_cast<const sockaddr*>(&address);
  return getnameinfo(generic, size, host, sizeof(host), nullptr, 0, NI_NUMERICHOST) == 0 ? host : "";
}

}  // namespace

std::optional<Route> FindRoute(const std::string& host, int port) {
  addrinfo hints = {};
  hints.ai_socktype = SOCK_DGRAM;
  addrinfo* found = nullptr;
  if (getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &found) != 0) return std::nullopt;
  std::optional<Route> route;
  for (const addrinfo* address = found; address != nullptr && !route; address = address->ai_next) {
    // Connecting a datagram socket makes the kernel choose the route.
    const int descriptor = socket(address->ai_family, SOCK_DGRAM, 0);
    if (descriptor < 0) continue;
    sockaddr_storage local = {}, remote = {};
    socklen_t local_size = sizeof(local), remote_size = sizeof(remote);
    if (connect(descriptor, address->ai_addr, address->ai_addrlen) == 0 &&
        getsockname(descriptor, reinterpret_cast<sockaddr*>(&local), &local_size) == 0 &&
        getpeername(descriptor, reinterpret_cast<sockaddr*>(&remote), &remote_size) == 0) {
      route = {NumericHost(local, local_size), NumericHost(remote, remote_size)};
    }
    close(descriptor);
  }
  freeaddrinfo(found);
  return route;
}

}  // namespace skein
