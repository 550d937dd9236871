// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <deque>
#include <functional>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "base/net/accepted_connection.h"

namespace skein {

// Gives connections to a gRPC server on a thread of its own.
//   FirstBytes -> Add -> the thread -> the server
// Reason: gRPC 1.51 reads from a new connection in the calling thread for as long as bytes keep coming. A client that
// sends without end would hold up the thread that watches for such clients (ConnectionGuard).
// Thread-safe; the destructor stops it.
class Handover {
 public:
  // Takes ownership of the socket. False: the server takes no more connections; the socket is closed here.
  using Give = std::function<bool(const AcceptedConnection& connection)>;

  explicit Handover(Give give);
  ~Handover() { Stop(); }
  Handover(const Handover&) = delete;
  Handover& operator=(const Handover&) = delete;

  // Takes ownership of the socket. Does not block.
  void Add(const AcceptedConnection& connection);
  // Waits for the connection that is being given. Closes those that have not been, and those of later calls of Add().
  // Idempotent. Call it while others still watch for floods: such a one may be what it waits for.
  void Stop();

 private:
  bool HasWork() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) { return stopping_ || !waiting_.empty(); }
  void GiveAll();

  const Give give_;
  absl::Mutex mu_;
  std::deque<AcceptedConnection> waiting_ ABSL_GUARDED_BY(mu_);  // Oldest first.
  bool stopping_ ABSL_GUARDED_BY(mu_) = false;
  std::thread thread_;
};

}  // namespace skein
