// SPDX-License-Identifier: Apache-2.0
#include "bench/rank_rounds.h"

#include <utility>

namespace skein {

absl::Status RankRounds::Start(const std::vector<int>& learners, absl::Duration duration) {
  for (const int ranks : learners) {
    auto crew = RankCrew::Start(options_.job, ranks, options_.stopped);
    if (!crew.ok()) return crew.status();
    const auto updates = (*crew)->Rehearse(duration);
    if (!updates.ok()) return updates.status();
    crews_.push_back({ranks, *updates, *std::move(crew)});
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<Json>> RankRounds::Round(int round) {
  std::vector<Json> rows(crews_.size());
  for (size_t i = 0; i < crews_.size(); ++i) {
    const size_t at = round % 2 == 1 ? i : crews_.size() - 1 - i;
    auto row = Measure(round, &crews_[at]);
    if (!row.ok()) return row.status();
    rows[at] = *std::move(row);
  }
  return rows;
}

absl::StatusOr<Json> RankRounds::Measure(int round, Crew* crew) {
  std::vector<Json> summing, alone;
  for (const bool sums : {round % 2 == 0, round % 2 == 1}) {
    auto ranks = crew->crew->Run(sums ? RankMode::kSumming : RankMode::kAlone, crew->updates);
    if (!ranks.ok()) return ranks.status();
    (sums ? summing : alone) = *std::move(ranks);
  }
  Json row = {{"round", round}, {"learners", crew->ranks}};
  row.update(options_.head);
  row.update(options_.combine(summing, alone));
  return row;
}

}  // namespace skein
