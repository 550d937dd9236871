// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace skein {

// The limit of the trajectory stream: gRPC carrying bytes that are not read. One bidirectional stream over the
// loopback to a server in this process, which throws each message away and answers with a byte; at most `in_flight`
// messages are unanswered. Between calls of Send nothing of it runs: a thread that waits for this stream's answers
// would otherwise carry the data of others, as all of gRPC's threads in a process wait for all of its sockets. Not
// thread-safe.
class BareStream {
 public:
  // The messages are copies of `message`, as many as `copies`, sent in turn: what is sent was not just sent.
  // Errors as StartGrpcServer.
  static absl::StatusOr<std::unique_ptr<BareStream>> Make(const std::string& message, int copies, int in_flight);
  ~BareStream();

  // Messages sent and answered in at least `duration`, and how long that took. Unavailable: the stream broke.
  struct Sent {
    uint64_t messages = 0;
    absl::Duration elapsed;
  };
  absl::StatusOr<Sent> Send(absl::Duration duration);

 private:
  struct Impl;
  explicit BareStream(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace skein
