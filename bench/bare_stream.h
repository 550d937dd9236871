// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace skein {

// Measures the upper limit of the trajectory stream: gRPC carrying bytes that are not parsed. One bidirectional stream
// over the loopback to a server in this process, which discards each message and answers with one byte; at most
// `in_flight` messages are unanswered. Between calls of Send() no thread of it runs: all gRPC threads of a process poll
// all of its sockets, so a thread waiting for this stream's answers would also carry other streams' data. Not
// thread-safe.
class BareStream {
 public:
  // The messages are `copies` copies of `message`, sent in turn, so that no buffer is sent twice in a row. Errors as
  // StartGrpcServer.
  static absl::StatusOr<std::unique_ptr<BareStream>> Make(const std::string& message, int copies, int in_flight);
  ~BareStream();

  // Sends for at least `duration`: messages sent and answered, and the time taken. Unavailable: the stream broke.
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
