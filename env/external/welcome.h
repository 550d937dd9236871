// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "env/env.h"
#include "skein/env/v1/environment.pb.h"

namespace skein {

// An environment server's answer to Hello, read and checked.
struct Welcomed {
  EnvSpec spec;
  std::string server;  // What serves, for people: Shown().
};

// Takes the server's answer to Hello, for the environment of that id.
// FailedPrecondition: the server says that it will never make the environment, it speaks another version, or its spec
// is refused. Unavailable: it says that it cannot make it now. DataLoss: this is no answer to Hello.
absl::StatusOr<Welcomed> TakeWelcome(const env::v1::ServerMessage& message, const std::string& id);

}  // namespace skein
