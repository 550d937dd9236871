// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "env/env.h"
#include "env/external/world_memory.h"
#include "skein/env/v1/environment.pb.h"

namespace skein {

// E environments in another process, as protocol skein.env.v1 has them.   columns -> Exchange -> columns
// Not thread-safe.
class World {
 public:
  virtual ~World() = default;

  virtual const EnvSpec& spec() const = 0;
  virtual const std::string& server() const = 0;  // What serves, for people.
  virtual size_t size() const = 0;
  // Constant. The request's are written before Exchange and the reply's read after it. A Reset changes only the rows
  // whose mask is 1.
  virtual const WorldColumns& columns() const = 0;

  // Sends the request and waits for its answer. After an error the world is of no further use.
  // DeadlineExceeded: no answer within `timeout`. Unavailable: the server has ended; the message says how.
  // DataLoss: its answer breaks the protocol.
  virtual absl::Status Exchange(WorldRequest request, absl::Duration timeout) = 0;
  // What the server said of environments that failed, since the last call.
  virtual std::vector<env::v1::Failure> TakeFailures() = 0;
};

}  // namespace skein
