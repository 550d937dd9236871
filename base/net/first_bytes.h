// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <poll.h>

#include <functional>
#include <vector>

#include "absl/time/time.h"
#include "base/telemetry/rare_log.h"

namespace skein {

// Connections whose protocol is not known yet: looks at their first bytes and hands on those that begin as
// this port's do, with HTTP/2's preface or with a TLS handshake. The others are closed, with a line of the log now and
// then; so are, without one, those that say nothing for `patience`. gRPC by itself closes them too, but without a log
// line.
//   Add -> AppendTo(polled) -> poll -> Serve -> HandOn
// Not thread-safe. The destructor closes those that still wait.
class FirstBytes {
 public:
  struct Options {
    int port = 0;
    bool tls = false;
    absl::Duration patience = absl::Seconds(10);
  };
  // Takes a connected socket over. False: connections are not served any more, close it.
  using HandOn = std::function<bool(int listener, int connection)>;

  FirstBytes(const Options& options, HandOn hand_on);
  ~FirstBytes();
  FirstBytes(const FirstBytes&) = delete;
  FirstBytes& operator=(const FirstBytes&) = delete;

  // Owns `connection`, which does not block.
  void Add(int listener, int connection, absl::Duration now);

  // What poll() is to wait for, besides other things; and until when, at most.
  void AppendTo(std::vector<pollfd>* polled) const;
  int TimeoutMillis(absl::Duration now) const;
  // After poll(), with the entries that AppendTo() made. REQUIRES: no Add() in between.
  void Serve(const pollfd* polled, absl::Duration now);

 private:
  struct Waiting {
    int listener = -1;
    int connection = -1;
    absl::Duration deadline;
  };
  // Whether it waits on. `ended`: nothing more will come.
  bool Examine(const Waiting& waiting, bool ended);

  const Options options_;
  const HandOn hand_on_;
  std::vector<Waiting> waiting_;  // Oldest first.
  RareLog strangers_;
};

}  // namespace skein
