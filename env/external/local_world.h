// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "env/external/world.h"

namespace skein {

// Options for starting the server of a LocalWorld.
struct LocalWorldOptions {
  std::string id;                      // Of the environment, for messages.
  std::vector<std::string> argv;       // argv[0] is a path.
  std::vector<std::string> extra_env;  // As Subprocess::Options.
  std::string hint;                    // What to look at if the server ends before it has answered. May be empty.
  std::string arguments;               // Hello.arguments
  size_t count = 1;
  absl::Duration start_timeout = absl::Seconds(60);
  // Returns true once no caller needs the world. The thread that waits for the server calls it about every 20 ms, while
  // the server starts and while it answers.
  std::function<bool()> given_up = [] { return false; };
};

// A World in a process of this host, which this starts and ends. The child has these descriptors, and SKEIN_ENV_FD=3:
//   3  a socket (AF_UNIX, SOCK_SEQPACKET) for messages of skein.env.v1, one in each packet; a packet of one byte is no
//      message and only wakes
//   4  the memory (memfd), which may be mapped once Memory has come
//   5  the reading end of a pipe that ends when this process does
// What the child prints goes to this process's standard error.
// FailedPrecondition: the server cannot make the environment, or its spec is refused. NotFound: no such program.
// Unavailable: it ended before it had answered. DeadlineExceeded: it has not answered in time.
// DataLoss: its answer breaks the protocol. Cancelled, also from Exchange: it was given up.
absl::StatusOr<std::unique_ptr<World>> StartLocalWorld(const LocalWorldOptions& options);

// The path of a program that is looked for as a shell does. NotFound: there is none.
absl::StatusOr<std::string> FindProgram(const std::string& name);

}  // namespace skein
