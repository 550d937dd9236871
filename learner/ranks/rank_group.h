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

// How the ranks of a learner stay in step: what comes next is agreed at a barrier of the coordinator before any of them
// enters a collective, so that none waits there for one that does something else.
//   MeetToForm -> Form -> { Meet until all are ready -> Agree on columns -> collectives } ...
// Not thread-safe. Errors are Aborted: a rank is missing, or the coordinator. They name who is. The group is useless
// then; those that are there may form another.
class RankGroup {
 public:
  struct Options {
    int rank = 0;  // The place in this group.
    int size = 1;
    uint64_t number = 1;        // Of the group: its meetings are no other group's.
    std::string announce_host;  // Under which other nodes reach this one; empty = found out.
    std::string device;         // learner.device: where the tensors are that the ranks sum.
    int local_rank = 0;         // Chooses the GPU where that is auto.
    std::string coordinator;    // Its address, host:port.
    // A rank that does not come for so long is missing: to the first meeting, to later ones, to a collective.
    absl::Duration form_timeout, meeting_timeout, timeout;
    std::function<bool()> stopping;  // Then a meeting is not waited for any longer than kLastMeeting; null: never.
  };
  // Waits for all ranks. `coordinator` must outlive the group. Other errors: as ParseTrainingDevice and
  // TcpStore::Serve.
  static absl::StatusOr<std::unique_ptr<RankGroup>> Form(const Options& options, CoordinatorClient* coordinator);

  ~RankGroup();

  Collective* collective() { return collective_.get(); }
  int rank() const { return options_.rank; }
  int size() const { return options_.size; }

  // Tells the others where this rank stands; returns where each does, by rank. Ranks that have to wait for data come
  // back at least every kRound, so that the others know that they live.
  static constexpr absl::Duration kRound = absl::Seconds(1);
  static constexpr absl::Duration kLastMeeting = absl::Seconds(4);
  absl::StatusOr<std::vector<v1::RankRound>> Meet(const v1::RankRound& mine);

  // What every rank says, by rank, on every rank.
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

// What all ranks do next, as each of them concludes from the same rounds.
struct RankDecision {
  enum class Kind { kWait, kTrain, kGoOnShort, kStop, kAdmit };
  Kind kind = Kind::kWait;
  int64_t column_offset = 0;  // kTrain: of this rank's columns among all.
  int64_t total_columns = 0;
  std::vector<int64_t> columns;  // kTrain: of each rank.
  bool admits = false;           // kTrain: the group is formed anew after this iteration, with whoever has come.
};
// kStop: somebody is to stop. kTrain: all are ready. kGoOnShort: somebody is ready, and nothing has arrived at any
// of the others for `shortfall`: these take what they have. kAdmit: there is a newcomer, and nothing has arrived for
// kAdmitAfter at those that are not ready: the group is formed anew now. kWait otherwise.
inline constexpr absl::Duration kAdmitAfter = absl::Seconds(1);
RankDecision Decide(const std::vector<v1::RankRound>& rounds, int rank, absl::Duration shortfall);

// What a collective says when another rank is gone or does not come (Unavailable, DeadlineExceeded) as Aborted, like
// everything else that the others can only start again after. Other statuses stay.
absl::Status AsLostRank(const absl::Status& status);

// The local address from which `address` (host:port) is reached. Empty: it cannot be told.
std::string LocalHostTowards(const std::string& address);

}  // namespace skein
