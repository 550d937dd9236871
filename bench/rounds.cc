// SPDX-License-Identifier: Apache-2.0
#include "bench/rounds.h"

#include <cmath>

#include "absl/strings/str_cat.h"
#include "base/process/clock.h"

namespace skein {

absl::StatusOr<std::vector<Json>> RunRounds(const Contest& contest, int rounds, absl::Duration seconds,
                                            const std::function<bool()>& stopped, ProgressLine* progress) {
  const absl::Duration begin = MonotonicNow();
  std::vector<Json> rows;
  for (int measured = 0; static_cast<int>(rows.size()) < rounds;) {
    Json ours, limit;
    for (bool is_limit : rows.size() % 2 == 0 ? std::vector<bool>{true, false} : std::vector<bool>{false, true}) {
      if (stopped()) return absl::CancelledError("stopped on request");
      const std::string& title = is_limit ? contest.limit_title : contest.ours_title;
      const absl::Duration each = measured > 0 ? (MonotonicNow() - begin) / measured : seconds;
      progress->Show(absl::StrCat("round ", rows.size() + 1, "/", rounds, ": ", title), each * (2 * rounds - measured));
      auto figures = is_limit ? contest.limit(seconds) : contest.ours(seconds);
      if (stopped()) return absl::CancelledError("stopped on request");
      if (!figures.ok()) return figures.status();
      const std::string key = is_limit ? contest.limit_rate() : contest.rate;
      if (const double rate = figures->value(key, 0.0); !std::isfinite(rate) || rate <= 0) {
        return absl::InternalError(
            absl::StrCat("measuring ", title, ": ", key, " is ", rate, ", want a positive number; try more --seconds"));
      }
      (is_limit ? limit : ours) = *std::move(figures);
      ++measured;
    }
    Json row = {{"round", rows.size() + 1}};
    row.update(ours);
    row.update(limit);
    if (contest.derive) contest.derive(&row);
    row["ratio"] = row.at(contest.rate).get<double>() / row.at(contest.reference_rate()).get<double>();
    rows.push_back(std::move(row));
  }
  progress->Clear();
  return rows;
}

}  // namespace skein
