// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace skein {

// A connection that a listening socket has accepted. Whoever is said to own it closes `socket`.
struct AcceptedConnection {
  int listener = -1;
  int socket = -1;
};

}  // namespace skein
