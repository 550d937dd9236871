// SPDX-License-Identifier: Apache-2.0
#include "base/telemetry/node_claim.h"

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <functional>

#include "absl/strings/str_cat.h"

namespace skein {

// The name is hashed, because an address has 107 bytes.
NodeClaim::NodeClaim(const std::string& name)
    : address_(absl::StrCat("skein/", absl::Hex(std::hash<std::string>()(name), absl::kZeroPad16))) {}

NodeClaim::~NodeClaim() {
  if (socket_ >= 0) close(socket_);
}

bool NodeClaim::Take() {
  if (socket_ >= 0) return true;
  const int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return false;
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  // The first byte stays 0: the address is abstract.
  std::copy(address_.begin(), address_.end(), address.sun_path + 1);
  const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + address_.size());
  if (bind(fd, reinterpret_cast<const sockaddr*>(&address), size) != 0) {
    close(fd);
    return false;
  }
  socket_ = fd;
  return true;
}

}  // namespace skein
