// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "absl/time/time.h"
#include "base/net/credentials.h"

namespace skein {

// Finds the reason for which TLS keeps a client with `credentials` from the server at `address` (host:port), and what
// to do. gRPC itself reports only that no answer came. Connects once. Empty: no process listens there, TLS is in order,
// or nothing is known after `limit`.
std::string FindTlsProblem(const std::string& address, const Credentials& credentials, absl::Duration limit);

}  // namespace skein
