// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <poll.h>

#include <functional>
#include <vector>

#include "absl/time/time.h"
#include "base/telemetry/rare_log.h"

namespace skein {

// Checks the first bytes of new connections. It hands on connections that begin with this port's protocol (the HTTP/2
// preface, or a TLS handshake) and closes the others with a rate-limited log line. Connections that send nothing for
// `patience` are closed without a log line.
// gRPC alone would close connections of another protocol too, but without a log line.
//   Add -> AppendTo(polled) -> poll -> Serve -> HandOn
// Not thread-safe. The destructor closes connections that still wait.
class FirstBytes {
 public:
  struct Options {
    int port = 0;
    bool tls = false;
    absl::Duration patience = absl::Seconds(10);
  };
  // Takes ownership of a connected socket.
  using HandOn = std::function<void(int listener, int connection)>;

  FirstBytes(const Options& options, HandOn hand_on);
  ~FirstBytes();
  FirstBytes(const FirstBytes&) = delete;
  FirstBytes& operator=(const FirstBytes&) = delete;

  // Takes ownership of `connection`, a non-blocking socket.
  void Add(int listener, int connection, absl::Duration now);

  // Appends the entries that poll() must wait for; and the longest time that it may wait (-1: no limit).
  void AppendTo(std::vector<pollfd>* polled) const;
  int TimeoutMillis(absl::Duration now) const;
  // Call it after poll() with the entries that AppendTo() appended. REQUIRES: no Add() in between.
  void Serve(const pollfd* polled, absl::Duration now);

 private:
  struct Waiting {
    int listener = -1;
    int connection = -1;
    absl::Duration deadline;
  };
  // Whether the connection must wait for more bytes. `ended`: the peer sends no more.
  bool Examine(const Waiting& waiting, bool ended);

  const Options options_;
  const HandOn hand_on_;
  std::vector<Waiting> waiting_;  // Oldest first.
  RareLog strangers_;
};

}  // namespace skein
