// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "member/coordinator_client.h"
#include "skein/v1/rank.pb.h"

namespace skein {

class Collective;

// Keeps the ranks of a learner in step. They agree at a coordinator barrier on what comes next before any of them
// enters a collective, so that no rank waits in a collective that another rank does not enter.
//   MeetToForm -> Form -> { Meet until all are ready -> Decide -> collectives } ...
// Not thread-safe. Errors are Aborted: a rank or the coordinator is missing; the message names it. The group is then
// unusable; the remaining ranks may form another.
class RankGroup {
 public:
  struct Options {
    int rank = 0;  // The place in this group.
    int size = 1;
    uint64_t number = 1;        // Of the group; keeps its meetings apart from other groups'.
    std::string announce_host;  // Under which other nodes reach this one; empty = the route to the coordinator.
    std::string device;         // learner.device: where the tensors are that the ranks sum.
    int local_rank = 0;         // Selects the GPU if `device` is auto.
    std::string coordinator;    // Its address, host:port.
    // How long to wait before a rank counts as missing: at the first meeting, at later ones, in a collective.
    absl::Duration form_timeout, meeting_timeout, timeout;
    std::function<bool()> stopping;  // True: wait in a meeting for at most kLastMeeting more; null: never.
    // Asked about once a second while ranks are awaited in Meet. Not OK: one of them will not come; null: unknown.
    std::function<absl::Status()> others;
  };
  // Waits for all ranks. `coordinator` must outlive the group. Other errors: as ParseTrainingDevice and
  // TcpStore::Serve.
  static absl::StatusOr<std::unique_ptr<RankGroup>> Form(const Options& options, CoordinatorClient* coordinator);

  ~RankGroup();

  Collective* collective() { return collective_.get(); }
  int rank() const { return options_.rank; }
  int size() const { return options_.size; }

  // Exchanges the ranks' status: sends this rank's, returns all, by rank. Ranks that wait for data meet at least every
  // kRound, so that the others know that they are alive.
  static constexpr absl::Duration kRound = absl::Seconds(1);
  static constexpr absl::Duration kLastMeeting = absl::Seconds(4);
  absl::StatusOr<std::vector<v1::RankRound>> Meet(const v1::RankRound& mine);

  // Gathers every rank's part of an iteration, by rank, on every rank.
  absl::StatusOr<std::vector<v1::RankIteration>> Gather(const v1::RankIteration& mine);

 private:
  RankGroup(const Options& options, CoordinatorClient* coordinator);
  absl::StatusOr<std::vector<std::string>> Arrive(const std::string& name, uint64_t generation, absl::Duration timeout,
                                                  std::string payload);

  const Options options_;
  CoordinatorClient* const coordinator_;
  std::unique_ptr<Collective> collective_;
  uint64_t rounds_;
};

// What all ranks do next. Each rank computes the same decision from the same rounds.
struct RankDecision {
  enum class Kind { kWait, kTrain, kGoOnShort, kStop, kAdmit };
  Kind kind = Kind::kWait;
  int64_t column_offset = 0;  // kTrain: of this rank's columns among all.
  int64_t total_columns = 0;
  std::vector<int64_t> columns;  // kTrain: of each rank.
  bool admits = false;           // kTrain: the group is formed again after this iteration, with all ranks then there.
};
// kStop: a rank was asked to stop. kTrain: all are ready. kGoOnShort: at least one is ready, and the others have
// received no data for `shortfall`: these train on what they have. kAdmit: a rank wants to join, and the ranks that are
// not ready have received no data for kAdmitAfter: the group is formed again now. kWait otherwise.
inline constexpr absl::Duration kAdmitAfter = absl::Seconds(1);
RankDecision Decide(const std::vector<v1::RankRound>& rounds, int rank, absl::Duration shortfall);

// Turns a collective's status for a rank that is gone or late (Unavailable, DeadlineExceeded) into Aborted, the code of
// all errors after which the ranks must meet again. Other statuses are unchanged.
absl::Status AsLostRank(const absl::Status& status);

// The local address from which `address` (host:port) is reached. Empty: unknown.
std::string LocalHostTowards(const std::string& address);

}  // namespace skein
