// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "absl/time/time.h"
#include "learner/collect/connection_id.h"
#include "skein/v1/learner_service.pb.h"
#include "skein/v1/status.pb.h"

namespace skein {

// Whether `connection` is one of the member that joined under `generation` and has its id: each connection to a learner
// counts the generation on by one.
bool IsConnectionOf(const ConnectionId& connection, uint64_t generation);

// Connections that have begun here and that the coordinator has not confirmed as members' yet.
//   hello -> Greet -> (the coordinator's status) -> Judge -> connections that are over, connections of no member
// Pure: no I/O, no clock (`now` counts from any fixed moment). Not thread-safe.
class UnconfirmedConnections {
 public:
  static constexpr size_t kMost = 10'000;

  // A connection that is over, and how many env steps its actor says that it had finished.
  struct Ended {
    ConnectionId connection;
    uint64_t env_steps_collected = 0;
  };
  struct Verdict {
    std::vector<Ended> ended;             // Earlier connections of members.
    std::vector<ConnectionId> strangers;  // Connections of no member.
  };

  bool empty() const { return waiting_.empty(); }
  size_t size() const { return waiting_.size(); }

  // `actor` said `hello` at `now`. `known`: there are books of it, so it is confirmed. Returns the earlier connection
  // of the same member, if it had one: that is over for sure. What it says of another member's connection waits for the
  // verdict.
  std::optional<Ended> Greet(const ConnectionId& actor, const v1::Hello& hello, bool known, absl::Duration now);

  // `status` is what the coordinator answered when it was asked at `asked`. It settles all connections that began
  // before: members' are confirmed, whatever becomes of their leases, and the others are strangers. What an actor that
  // joined again says of its earlier connection is believed if the actor is a member and that connection is no member's
  // any more. The answer of a coordinator that has not been up for two leases changes nothing: if it has lost its
  // state, its members are joining again.
  Verdict Judge(const v1::StatusResponse& status, absl::Duration asked, absl::Duration lease);

 private:
  struct Waiting {
    absl::Duration since;
    Ended before;  // Generation 0: there is none.
  };
  std::map<ConnectionId, Waiting> waiting_;
};

}  // namespace skein
