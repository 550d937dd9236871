// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "env/external/world.h"

namespace skein {

// Address of a RemoteWorld's server, and the environment that is requested from it.
struct RemoteWorldOptions {
  std::string id;         // Of the environment, for messages.
  std::string address;    // host:port
  std::string name;       // Hello.environment
  std::string arguments;  // Hello.arguments
  size_t count = 1;
  absl::Duration start_timeout = absl::Seconds(60);
  std::function<bool()> given_up = [] { return false; };  // As LocalWorldOptions.
};

// A World behind gRPC, with this process's credentials (base/net/credentials.h).
// FailedPrecondition: the server cannot make the environment, its spec is refused, or this was built without gRPC.
// NotFound, Unauthenticated, PermissionDenied: what the server says. Unavailable: it cannot be reached.
// DeadlineExceeded: no answer in time. DataLoss: its answer breaks the protocol. Cancelled, also from Exchange: it was
// given up.
absl::StatusOr<std::unique_ptr<World>> OpenRemoteWorld(const RemoteWorldOptions& options);

}  // namespace skein
