// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "absl/status/statusor.h"

namespace skein {

// A socket that does not block and is closed on exec, with its port.
struct Listener {
  int descriptor = -1;  // The caller's.
  int port = 0;
};

// Listens on `host`, a name or a number of this node, and nowhere else; port 0 = any. Unavailable: there is no such
// host, it is none of this node's, or the port is taken.
absl::StatusOr<Listener> ListenOn(const std::string& host, int port, int backlog);

}  // namespace skein
