// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "base/process/cancellation.h"
#include "skein/v1/coordinator_service.pb.h"

namespace skein {

// A member's side of the control plane: joins, keeps the lease alive from a thread of its own, joins again
// (new generation) when the coordinator has forgotten it or was restarted. A coordinator that is away is
// waited for with jittered back-off for as long as the client lives; one that refuses is fatal. Thread-safe; the
// callbacks must not destroy the client or call Leave(). Of several addresses (a coordinator and its standbys) it uses
// one at a time, and tries the next one whenever that does not answer.
class CoordinatorClient {
 public:
  struct Membership {
    std::string member_id;
    uint64_t generation = 0;
    std::string run_id;
    std::string learner_address;  // Empty until there is a learner.
  };
  struct Options {
    std::string address;                         // Of the coordinator, host:port, or several with commas between.
    v1::JoinRequest join;                        // Sent at each join; run_id is filled in from the first answer.
    absl::Duration timeout = absl::Seconds(30);  // For the first join only.
    Cancellation* cancel_join = nullptr;         // Ends Join() early; not owned, not used after it.
    // Called on the client's thread before each heartbeat; must not block.
    std::function<void(v1::HeartbeatRequest*)> fill_report;
    // Called on the client's thread when generation or learner_address have changed, and once at the start.
    std::function<void(const Membership&)> on_membership;
    // Called on the client's thread when the run's state has changed.
    std::function<void(v1::RunState)> on_run_state;
    // Called on the client's thread after each heartbeat that was answered.
    std::function<void(absl::Duration round_trip)> on_heartbeat;
    // Both on the client's thread, after a heartbeat that was answered: whether the coordinator wants the run's status;
    // and what the coordinator says it is, if it answers within a quarter of a lease, with when it was asked
    // (MonotonicNow()).
    std::function<bool()> wants_status;
    std::function<void(const v1::StatusResponse&, absl::Duration asked)> on_status;
    // Called on the client's thread once the coordinator asks this member to finish what it has begun and leave.
    std::function<void()> on_drain;
    // Called on the client's thread when the coordinator refuses for good to take this member back (FailedPrecondition
    // or InvalidArgument, e.g. it serves another run now). Heartbeats have ended then; Leave() is still allowed.
    std::function<void(const absl::Status&)> on_fatal;
  };

  // Blocks until joined. InvalidArgument: `address` is not host:port. Unavailable: no coordinator answered there within
  // `timeout`. Cancelled: `cancel_join`, within a second. Other codes as Join.
  static absl::StatusOr<std::unique_ptr<CoordinatorClient>> Join(Options options);
  virtual ~CoordinatorClient() = default;  // Stops heartbeats; does not leave.

  virtual const v1::RunConfig& config() const = 0;  // As of the first join.
  virtual Membership membership() const = 0;
  // Sends a last report (fill_report is called once more, here) and leaves. Best effort within 2 s; heartbeats have
  // stopped and waiting calls are cancelled when it returns.
  virtual absl::Status Leave() = 0;

  struct Barrier {
    std::string name;
    uint64_t generation = 1;                        // Counted by the callers from 1, for each name.
    absl::Duration timeout = absl::ZeroDuration();  // 0 = the run's default.
    uint32_t participants = 0;                      // Opens once so many are there; 0 = the live members of the role.
    std::string payload;                            // For the others; at most 4,096 bytes.
  };
  struct BarrierResult {
    std::vector<std::string> members;   // The participants, ordered by id.
    std::vector<std::string> payloads;  // Of each of them.
  };
  // Arrives at a named barrier (see ArriveAtBarrier in the proto). Codes as in the proto; Unavailable: the coordinator
  // was away until the timeout. Cancelled: Leave().
  virtual absl::StatusOr<BarrierResult> ArriveAtBarrier(const Barrier& barrier) = 0;
  // Of the live members, with nothing to tell: returns the participants.
  absl::StatusOr<std::vector<std::string>> ArriveAtBarrier(const std::string& name, uint64_t generation,
                                                           absl::Duration timeout);
};

}  // namespace skein
