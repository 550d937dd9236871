// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "absl/time/time.h"
#include "learner/collect/step_ledger.h"
#include "skein/v1/learner_service.pb.h"
#include "skein/v1/status.pb.h"

namespace skein {

// Whether `life` is a stay with a learner of the member that joined under `generation`, whose id it has. Each stay
// counts the generation on by one.
bool IsStayOf(const ActorKey& life, uint64_t generation);

// Lives that have begun here and of which the coordinator has not said yet that they are members'.
//   hello -> Greet -> (the coordinator's status) -> Judge -> lives that are over, lives that are nobody's
// Pure: no I/O, no clock (`now` counts from any fixed moment). Not thread-safe.
class Newcomers {
 public:
  static constexpr size_t kMost = 10'000;

  // A life that is over, and how many env steps it had finished, as who lived it says.
  struct Ended {
    ActorKey life;
    uint64_t env_steps_collected = 0;
  };
  struct Verdict {
    std::vector<Ended> ended;         // Members' lives before.
    std::vector<ActorKey> strangers;  // Newcomers that are no members'.
  };

  bool empty() const { return waiting_.empty(); }
  size_t size() const { return waiting_.size(); }

  // `actor` said `hello` at `now`. `known`: it is no newcomer, there are books of it. Returns the stay of the same
  // member before, if it had one: that is over for sure. What it says of another member's life waits for the verdict.
  std::optional<Ended> Greet(const ActorKey& actor, const v1::Hello& hello, bool known, absl::Duration now);

  // `status` is what the coordinator answered when it was asked at `asked`. Those that had come before are no newcomers
  // from now on: members stay, whatever becomes of their leases, and the others are strangers. What an actor that
  // joined again says of its life before is believed if it is a member and that life is none any more. The answer of a
  // coordinator that has not been up for two leases changes nothing: if it has lost its state, its members are joining
  // again.
  Verdict Judge(const v1::StatusResponse& status, absl::Duration asked, absl::Duration lease);

 private:
  struct Newcomer {
    absl::Duration since;
    Ended before;  // Generation 0: there is none.
  };
  std::map<ActorKey, Newcomer> waiting_;
};

}  // namespace skein
