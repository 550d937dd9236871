// SPDX-License-Identifier: Apache-2.0
#include "learner/ranks/listener.h"

#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <memory>

#include "absl/strings/str_cat.h"

namespace skein {
namespace {

int PortOf(const sockaddr_storage& address) {
  return ntohs(address.ss_family == AF_INET6 ? reinterpret_cast<const sockaddr_in6*>(&address)->sin6_port
                                             : reinterpret_cast<const sockaddr_in*>(&address)->sin_port);
}

}  // namespace

absl::StatusOr<Listener> ListenOn(const std::string& host, int port, int backlog) {
  addrinfo hints = {};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_NUMERICSERV;
  addrinfo* found = nullptr;
  if (const int error = getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &found); error != 0) {
    return absl::UnavailableError(absl::StrCat("listening on ", host, ": ", gai_strerror(error)));
  }
  const std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> owner(found, &freeaddrinfo);
  int error = 0;
  for (const addrinfo* one = found; one != nullptr; one = one->ai_next) {
    const int descriptor = socket(one->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (descriptor < 0) {
      error = errno;
      continue;
    }
    sockaddr_storage own = {};
    socklen_t size = sizeof(own);
    if (bind(descriptor, one->ai_addr, one->ai_addrlen) == 0 && listen(descriptor, backlog) == 0 &&
        getsockname(descriptor, reinterpret_cast<sockaddr*>(&own), &size) == 0) {
      return Listener{descriptor, PortOf(own)};
    }
    error = errno;
    close(descriptor);
  }
  return absl::UnavailableError(absl::StrCat("listening on ", host, " port ", port, ": ", std::strerror(error)));
}

}  // namespace skein
