// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "bench/rank_crew.h"
#include "bench/statistics.h"

namespace skein {

// Crews of different sizes, measured in turn.   RankCrew::Run with summing, alone -> rows
// Not thread-safe. Errors as RankCrew.
class RankRounds {
 public:
  struct Options {
    RankCrew::Job job;
    Json head = Json::object();  // What all rows have, after round and learners.
    // The rest of a row, from the results of each rank with summing and alone.
    std::function<Json(const std::vector<Json>& summing, const std::vector<Json>& alone)> combine;
    std::function<bool()> stopped;
  };

  explicit RankRounds(Options options) : options_(std::move(options)) {}

  // Starts crews of so many ranks each, whose measurements take about `duration`.
  absl::Status Start(const std::vector<int>& learners, absl::Duration duration);
  // A row of each crew. Rounds have the crews in opposite orders in turn, and so they have summing and alone.
  absl::StatusOr<std::vector<Json>> Round(int round);

 private:
  struct Crew {
    int ranks;
    int64_t updates;  // Of each measurement.
    std::unique_ptr<RankCrew> crew;
  };
  absl::StatusOr<Json> Measure(int round, Crew* crew);

  const Options options_;
  std::vector<Crew> crews_;
};

}  // namespace skein
