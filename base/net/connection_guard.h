// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "base/net/stream_counts.h"
#include "base/telemetry/rare_log.h"

// Ends connections to a gRPC server whose peers flood it, below gRPC.
namespace skein {

// The kernel's id of the socket with this file number, which no other socket ever has. Nullopt: no socket has this
// number now.
std::optional<uint64_t> CookieOf(int socket);

// Resets the connection and drops what has been received. gRPC then sees an error and closes the file. False: the
// number means another socket by now, or none; then nothing is done.
bool Disconnect(int socket, uint64_t cookie);

// Ends connections that cost memory and bring nothing; gRPC 1.51 has no limit for that:
// - those that make calls and reset them at once (CVE-2023-44487, "rapid reset"). A reset call does not count against
//   the connection's limit of open calls, but its memory stays until the server has worked off the call;
// - those that send bytes without end which are neither calls nor messages: pings, settings. Their answers queue.
//   Add (each connection) -> Look (often) -> the addresses of connections that it has ended, and of those that have
//   proved themselves
// A connection is new until a look finds that it behaves: it has sent little, or no more calls of it are being worked
// on than a client may have open.
// gRPC owns the sockets. A connection is ended below gRPC, with TLS as without: it is disconnected, which also drops
// the bytes that gRPC has not read yet.
// Not thread-safe.
class ConnectionGuard {
 public:
  struct Options {
    absl::Duration period = absl::Milliseconds(25);
    absl::Duration busy_period = absl::Milliseconds(5);             // While any peer has sent more than a few bytes.
    absl::Duration period_per_connection = absl::Microseconds(20);  // A look at one that is silent takes 1 us.
    int64_t alive = 128;  // Calls of one connection that take memory. A client may have 64 open ones.
    double resets = 100;  // Resets of one connection at once,
    double resets_per_second = 20;
    int64_t open = 64;  // Calls that a client may have open.
    absl::Duration new_at_least = absl::Milliseconds(5);
    absl::Duration new_at_most = absl::Seconds(1);
    int64_t useless_bytes = 64 << 10;  // Since its last call or message: pings and the like,
    int64_t message_bytes = 32 << 20;  // and while a call is open twice the largest message.
  };
  // Addresses of peers, ConnectionName::peer_address.
  struct Found {
    std::vector<std::string> ended;    // One for each connection that exceeded the limits.
    std::vector<std::string> settled;  // One for each that is new no more: it has proved itself, or gRPC has closed it.
  };
  ConnectionGuard();
  explicit ConnectionGuard(const Options& options);

  // Adds a connection that gRPC will serve. `now` is monotonic. False: its peer has gone already, it is not watched.
  bool Add(int socket, absl::Duration now);
  // If the period is over, looks at all connections and ends those that exceed the limits.
  Found Look(absl::Duration now);
  // How long poll() may wait until the next look; -1: there are no connections.
  int TimeoutMillis(absl::Duration now) const;

 private:
  struct Connection {
    uint64_t cookie = 0;  // The number of the file may mean another socket by now.
    ConnectionName name;
    absl::Duration added;
    bool is_new = true;
    bool ended = false;  // By Look(), but gRPC still works on what it has read from it.
    int64_t bytes_read = 0;
    int64_t resets_seen = 0;
    double resets_left = 0;
    absl::Duration filled;
    int64_t calls_and_messages = 0;
    int64_t useful_bytes = 0;  // Read up to the last of them.
  };
  using Counts = std::optional<StreamCounts::Counts>;
  // What the connection does beyond its limits; null: nothing. `read`: bytes.
  const char* Offence(Connection* connection, const Counts& counts, int64_t read, absl::Duration now) const;
  // Whether a new connection has proved itself. `counts` are not needed of one that has sent little. `received`: bytes,
  // with those that wait in the kernel.
  bool IsSettled(const Connection& connection, const Counts& counts, int64_t received, absl::Duration now) const;

  const Options options_;
  absl::Duration next_ = -absl::InfiniteDuration();  // Time of the next look.
  std::map<int, Connection> connections_;            // By the number of the file.
  std::vector<std::string> replaced_;                // Peers of new ones whose number another connection has now.
  StreamCounts counts_;
  RareLog log_;
};

}  // namespace skein
