// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <cstddef>

#include "absl/time/time.h"

struct ssl_ctx_st;
struct ssl_st;

namespace skein {

// A server's side of a connection, with or without TLS, with one deadline for all of it: a client
// that sends or takes a byte now and then gains no time. Not thread-safe; shutdown() of the descriptor by another
// thread ends what waits.
//   Open -> Read ... -> set_deadline -> Write
class TimedSocket {
 public:
  // Owns `descriptor`. `tls`: a server's context, which must outlive this; nullptr: no TLS. `deadline` as
  // MonotonicNow().
  TimedSocket(int descriptor, ssl_ctx_st* tls, absl::Duration deadline);
  ~TimedSocket();
  TimedSocket(const TimedSocket&) = delete;
  TimedSocket& operator=(const TimedSocket&) = delete;

  void set_deadline(absl::Duration deadline) { deadline_ = deadline; }
  const ssl_st* ssl() const { return ssl_; }  // nullptr without TLS.

  // TLS's handshake; without TLS nothing. False: it failed, or the deadline has passed.
  bool Open();
  // Waits for one byte at least: how many there are. 0: the client has ended. -1: an error, or the deadline has passed.
  ssize_t Read(char* to, size_t size);
  // All of it, or false.
  bool Write(const char* from, size_t size);

 private:
  // Repeats `attempt`, which does not block, until it moves something.
  template <typename Attempt>
  ssize_t Move(short wanted, Attempt attempt);
  bool WaitFor(short events);

  const int descriptor_;
  const bool tls_;
  ssl_st* const ssl_;  // Also nullptr where OpenSSL could not make it: Open() fails then.
  absl::Duration deadline_;
};

}  // namespace skein
