// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"

namespace skein {

// A TCP hop between two real processes that a test makes bad while they run.   client -> address() -> upstream
// Faults hold for all connections, open and new ones, from when the call that makes them returns until they are taken
// back. The proxy reads no more than 64 KiB
// ahead of what it may pass on, so a slow link pushes back. Thread-safe; one thread of its own moves the bytes.
class FaultProxy {
 public:
  enum class Direction { kToServer, kToClient, kBoth };

  // Listens on a free port of 127.0.0.1. `upstream` is an IPv4 address and a port; what cannot be reached there is
  // closed. The process ends if there is no port.
  explicit FaultProxy(std::string upstream);
  ~FaultProxy();
  FaultProxy(const FaultProxy&) = delete;
  FaultProxy& operator=(const FaultProxy&) = delete;

  const std::string& address() const { return address_; }
  // For connections from now on.
  void SetUpstream(const std::string& upstream);

  // Each byte arrives so much later; 0 = at once.
  void Delay(Direction direction, absl::Duration delay);
  // Of each connection, and so many bytes at once at most after a pause; 0 = no limit.
  void LimitRate(Direction direction, uint64_t bytes_per_second);
  // Bytes and ends of streams vanish: a half-open connection, of which neither side is told anything. A connection that
  // has lost bytes never recovers: Heal() resets it.
  void Swallow(Direction direction);
  // New connections are accepted and reset at once.
  void Refuse();
  // Resets all open connections on both sides.
  void Cut();
  // No faults any more.
  void Heal();

  int open_connections() const;
  int connections() const;  // Accepted since the beginning.
  // When each of them was, by MonotonicNow().
  std::vector<absl::Duration> connection_times() const;
  // Passed on to the server since the beginning.
  uint64_t bytes_to_server() const;

 private:
  struct Faults {
    absl::Duration delay = absl::ZeroDuration();
    uint64_t bytes_per_second = 0;
    bool swallow = false;
  };
  struct Pipe;
  struct Connection;
  enum class Reset { kNone, kHoled, kAll };

  void Run();
  void Accept(bool refuse);
  void Change(Direction direction, void (*change)(Faults*, int64_t), int64_t value);
  void Wake();
  // Returns once the thread acts on all that was changed before.
  void AwaitChange();

  int listener_ = -1, wake_ = -1;
  std::string address_;
  std::map<int, std::unique_ptr<Connection>> open_;  // By number. Of the thread.
  int last_connection_ = 0;                          // Of the thread.

  mutable absl::Mutex mu_;
  std::string upstream_ ABSL_GUARDED_BY(mu_);
  Faults to_server_ ABSL_GUARDED_BY(mu_), to_client_ ABSL_GUARDED_BY(mu_);
  bool refuse_ ABSL_GUARDED_BY(mu_) = false;
  Reset reset_ ABSL_GUARDED_BY(mu_) = Reset::kNone;
  bool stop_ ABSL_GUARDED_BY(mu_) = false;
  int changes_ ABSL_GUARDED_BY(mu_) = 0, adopted_ ABSL_GUARDED_BY(mu_) = 0;  // Counts; the thread has seen so many.
  int open_connections_ ABSL_GUARDED_BY(mu_) = 0;
  std::vector<absl::Duration> connection_times_ ABSL_GUARDED_BY(mu_);
  uint64_t bytes_to_server_ ABSL_GUARDED_BY(mu_) = 0;
  std::thread thread_;
};

}  // namespace skein
