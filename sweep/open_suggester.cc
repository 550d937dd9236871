// SPDX-License-Identifier: Apache-2.0
#include "sweep/open_suggester.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "sweep/optuna_suggester.h"
#include "sweep/sampler.h"

namespace skein {

absl::StatusOr<std::unique_ptr<Suggester>> OpenSuggester(const SweepFile& file, const v1::RunConfig& base,
                                                         const std::string& space_path, const std::string& folder,
                                                         const std::string& journal, const Scheduler& scheduler,
                                                         uint32_t* max_trials) {
  const std::string& kind = file.config.sampler().kind();
  if (kind == "grid") {
    auto points = GridPoints(file.space, AdmitsByConstraints(file.space, base));
    if (!points.ok()) return points.status();
    if (points->empty())
      return absl::InvalidArgumentError(absl::StrCat(space_path, ": no point of the grid meets the constraints"));
    const auto size = static_cast<uint32_t>(points->size());
    *max_trials = *max_trials == 0 ? size : std::min(size, *max_trials);
    return std::make_unique<GridSuggester>(*std::move(points));
  }
  if (kind == "random") {
    const Admits admits = AdmitsByConstraints(file.space, base);
    if (!DrawPoint(file.space, file.config.seed(), 0, admits)) {
      return absl::InvalidArgumentError(
          absl::StrCat(space_path, ": ", kDraws, " random points, and none of them meets the constraints"));
    }
    return std::make_unique<RandomSuggester>(file.space, file.config.seed(), admits);
  }
  auto optuna = OptunaSuggester::Start({.journal = journal, .folder = folder}, file, scheduler);
  if (!optuna.ok()) return optuna.status();
  return *std::move(optuna);
}

}  // namespace skein
