// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <cstddef>

#include "absl/time/time.h"

struct ssl_ctx_st;
struct ssl_st;

namespace skein {

// A server's side of a connection, with or without TLS. One deadline covers all operations, so that a
// client cannot extend it by sending or reading single bytes. Not thread-safe; a waiting operation ends when another
// thread calls shutdown() on the descriptor.
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

  // Does the TLS handshake; without TLS it does nothing. False: it failed, or the deadline has passed.
  bool Open();
  // Waits for at least one byte; returns the number read. 0: the client has closed. -1: an error, or past the deadline.
  ssize_t Read(char* to, size_t size);
  // Writes all `size` bytes. False: an error, or the deadline has passed.
  bool Write(const char* from, size_t size);

 private:
  // Repeats the non-blocking `attempt` until it transfers at least one byte.
  template <typename Attempt>
  ssize_t Move(short wanted, Attempt attempt);
  bool WaitFor(short events);

  const int descriptor_;
  const bool tls_;
  ssl_st* const ssl_;  // Also nullptr if OpenSSL could not create it; then Open() fails.
  absl::Duration deadline_;
};

}  // namespace skein
