// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "absl/status/statusor.h"

namespace skein {

// A listening socket, non-blocking and close-on-exec, with its port.
struct Listener {
  int descriptor = -1;  // Owned by the caller.
  int port = 0;
};

// Listens only on `host`, a name or numeric address of this node; port 0 = any. Unavailable: there is no such host, it
// is not an address of this node, or the port is taken.
absl::StatusOr<Listener> ListenOn(const std::string& host, int port, int backlog);

}  // namespace skein
