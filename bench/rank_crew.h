// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "bench/rank_place.h"
#include "bench/statistics.h"
#include "bench/temporary_folder.h"
#include "launch/child.h"

namespace skein {

// Runs the ranks of one learner, or of `skein fit`, as processes of this program, ready for updates.
//   RankCrew::Start -> Run -> measurements of each rank
// Not thread-safe. The processes end with this object. Start and Run: Cancelled: `stopped()`. Others: a rank's error if
// it ended.
class RankCrew {
 public:
  // What each rank is: a verb of rank_worker.h and its flags.
  struct Job {
    std::string verb;
    std::string config_yaml;
    std::string data_path;  // Empty: none.
  };

  // Ranks wait only for those of their own crew.
  static absl::StatusOr<std::unique_ptr<RankCrew>> Start(const Job& job, int ranks, std::function<bool()> stopped);
  ~RankCrew();

  // The results of the verb's work, by rank. Each has "seconds" and "updates".
  absl::StatusOr<std::vector<Json>> Run(RankMode mode, int64_t updates);

  // Runs one update of each kind, which allocates what later ones reuse. Returns how many updates take about
  // `duration`.
  absl::StatusOr<int64_t> Rehearse(absl::Duration duration);

 private:
  struct Rank {
    std::unique_ptr<Child> process;
    int commands = -1;  // The pipe's descriptor.
  };

  RankCrew(TemporaryFolder folder, std::function<bool()> stopped)
      : folder_(std::move(folder)), stopped_(std::move(stopped)) {}
  absl::Status StartRank(const Job& job, int rank, int ranks, int store_port);
  absl::StatusOr<std::string> Line(Rank* rank);
  // Why the crew failed, after a rank closed its output.
  absl::Status Failure();

  const TemporaryFolder folder_;
  const std::function<bool()> stopped_;
  std::vector<Rank> ranks_;
};

}  // namespace skein
