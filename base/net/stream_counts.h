// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

// Counts the streams and messages of each connection to a server of this process.
namespace skein {

// Identifies one TCP connection to a server of this process: the server's port, the peer's address and port.
struct ConnectionName {
  int local_port = 0;
  std::string peer_address;  // 4 or 16 bytes; 4 for an IPv4 address that is mapped to IPv6.
  int peer_port = 0;
  auto operator<=>(const ConnectionName&) const = default;
};

// What of a peer's address counts as one client: all of an IPv4 address, of an IPv6 address the first 8 bytes, which is
// what one site is given.
std::string SiteOf(const std::string& address);

// The name of a connected TCP socket. Nullopt: it is no TCP socket, or not connected.
std::optional<ConnectionName> NameOfConnection(int socket);

// Reads from gRPC's channelz how many streams (calls) and messages each connection to a server of this process has had.
// Not thread-safe.
class StreamCounts {
 public:
  struct Counts {
    int64_t started = 0;
    int64_t answered = 0;  // The server has sent the call's status.
    int64_t reset = 0;     // Ended in another way: by the peer, or with the connection.
    int64_t messages = 0;  // Of both sides.
    // Streams that still take memory.
    int64_t alive() const { return started - answered - reset; }
  };

  // Nullopt: gRPC does not know the connection: its handshake has not ended, or the connection has.
  std::optional<Counts> Of(const ConnectionName& name);

 private:
  struct Known {
    int64_t socket = 0;  // channelz's id.
    bool seen = false;   // In the list that Learn() reads.
  };
  // Reads the names of sockets that are new since the last call, and forgets those that have gone.
  void Learn();
  void LearnSocketsOf(int64_t server);

  std::map<ConnectionName, Known> known_;
  std::map<int64_t, ConnectionName> names_;  // By channelz's id.
};

}  // namespace skein
