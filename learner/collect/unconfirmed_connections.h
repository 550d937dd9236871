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

// A list of connections that may not belong to members, so that those of strangers are ended.
namespace skein {

// True if `connection` can belong to the member with its id that joined under `generation`. Each move to another
// learner adds one to the generation.
bool IsConnectionOf(const ConnectionId& connection, uint64_t generation);

// Connections that the coordinator has not yet confirmed as belonging to members.
//   hello -> Greet -> (the coordinator's status) -> Judge -> connections that ended, connections of no member
// Pure: no I/O, no clock (`now` counts from any fixed moment). Not thread-safe.
class UnconfirmedConnections {
 public:
  static constexpr size_t kMost = 10'000;

  // A connection that ended, and the env steps that its actor claims to have finished in it.
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

  // `actor` sent `hello` at `now`. `known`: the connection has an account, so it is confirmed. Returns the earlier
  // connection that the hello names if it is of the same member: that one has certainly ended. A claim about another
  // member's connection waits for Judge.
  std::optional<Ended> Greet(const ConnectionId& actor, const v1::Hello& hello, bool known, absl::Duration now);

  // `status`: the coordinator's answer to a request made at `asked`. It settles all connections that began before
  // `asked`: those of members are confirmed for good, even if a lease ends later; the others are strangers. An actor
  // that joined again may name its earlier connection; the claim is accepted if the actor is a member and that
  // connection no longer belongs to one. An answer from a coordinator that has been up for less than two leases has no
  // effect: if it has lost its state, its members are still joining again.
  Verdict Judge(const v1::StatusResponse& status, absl::Duration asked, absl::Duration lease);

 private:
  struct Waiting {
    absl::Duration since;
    Ended before;  // Generation 0: there is none.
  };
  std::map<ConnectionId, Waiting> waiting_;
};

}  // namespace skein
