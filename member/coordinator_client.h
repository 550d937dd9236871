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

// A member's side of the control plane. It joins the run, renews the lease on its own thread, and joins again
// (new generation) if the coordinator expelled the member or restarted. While no coordinator is reachable, it
// retries with jittered back-off for as long as it lives; a refusal is fatal. Thread-safe; the
// callbacks must not destroy the client or call Leave(). With several addresses (a coordinator and its standbys) it
// uses one at a time and tries the next one after each call without an answer.
class CoordinatorClient {
 public:
  struct Membership {
    std::string member_id;
    uint64_t generation = 0;
    std::string run_id;
    std::string learner_address;  // Empty until a learner has joined.
  };
  struct Options {
    std::string address;                         // The coordinator's host:port, or several separated by commas.
    v1::JoinRequest join;                        // Sent at each join; run_id is filled in from the first answer.
    absl::Duration timeout = absl::Seconds(30);  // For the first join only.
    Cancellation* cancel_join = nullptr;         // Ends Join() early; not owned, not used after Join().
    // Called on the client's thread before each heartbeat; must not block.
    std::function<void(v1::HeartbeatRequest*)> fill_report;
    // Called on the client's thread when generation or learner_address have changed, and once at the start.
    std::function<void(const Membership&)> on_membership;
    // Called on the client's thread when the run's state has changed.
    std::function<void(v1::RunState)> on_run_state;
    // Called on the client's thread after each heartbeat that was answered.
    std::function<void(absl::Duration round_trip)> on_heartbeat;
    // Both called on the client's thread after each heartbeat that was answered. wants_status: whether the client shall
    // ask for the run's status. on_status: the coordinator's answer, if it came within a quarter of a lease, with the
    // time of the request (MonotonicNow()).
    std::function<bool()> wants_status;
    std::function<void(const v1::StatusResponse&, absl::Duration asked)> on_status;
    // Called on the client's thread once the coordinator asks this member to finish its work and leave.
    std::function<void()> on_drain;
    // Called on the client's thread when the coordinator finally refuses a new join of this member (FailedPrecondition
    // or InvalidArgument, e.g. it serves another run now). Heartbeats have ended then; Leave() is still allowed.
    std::function<void(const absl::Status&)> on_fatal;
  };

  // Blocks until joined. InvalidArgument: `address` is not host:port. Unavailable: no coordinator answered there within
  // `timeout`. Cancelled: `cancel_join`, within a second. Other codes as Join.
  static absl::StatusOr<std::unique_ptr<CoordinatorClient>> Join(Options options);
  virtual ~CoordinatorClient() = default;  // Stops heartbeats; does not leave.

  virtual const v1::RunConfig& config() const = 0;  // The configuration that the first join returned.
  virtual Membership membership() const = 0;
  // Sends a last report (fill_report is called once more, on the caller's thread) and leaves. Best effort within 2 s.
  // When it returns, heartbeats have stopped and waiting calls are cancelled.
  virtual absl::Status Leave() = 0;

  struct Barrier {
    std::string name;
    uint64_t generation = 1;                        // For each name, callers count generations from 1.
    absl::Duration timeout = absl::ZeroDuration();  // 0 = the run's default.
    uint32_t participants = 0;                      // Number of arrivals that opens it; 0 = live members of the role.
    std::string payload;                            // Sent to all participants; at most 4,096 bytes.
  };
  struct BarrierResult {
    std::vector<std::string> members;   // The participants, ordered by id.
    std::vector<std::string> payloads;  // In the same order.
  };
  // Arrives at a named barrier (see ArriveAtBarrier in the proto). Codes as in the proto; Unavailable: no coordinator
  // was reachable until the timeout. Cancelled: Leave().
  virtual absl::StatusOr<BarrierResult> ArriveAtBarrier(const Barrier& barrier) = 0;
  // A barrier of all live members of the role, without payload. Returns the participants.
  absl::StatusOr<std::vector<std::string>> ArriveAtBarrier(const std::string& name, uint64_t generation,
                                                           absl::Duration timeout);
};

}  // namespace skein
