// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "learner/algorithm/directions/direction_search.h"

// Augmented random search, an algorithm.
namespace skein {

// Positions in `returns` of the `top` directions with the largest max(plus, minus), ascending; of equal ones the first
// count. 0 = all, and no more than there are.
std::vector<size_t> BestDirections(absl::Span<const DirectionReturn> returns, size_t top);

// Augmented random search, Mania, Guy and Recht 2018, "Simple random search provides a competitive approach to
// reinforcement learning", algorithm 2 (V1, V1-t, V2, V2-t):
//   M <- M + alpha / (b sigma_R) sum over the b best directions (r+ - r-) delta
// sigma_R is the standard deviation of the 2 b returns used. Where it is 0 the parameters stay as they are.
class Ars final : public DirectionSearch {
 public:
  // As DirectionSearch.
  Ars(const v1::RunConfig& config, const ActorCriticOptions& network) : DirectionSearch(config, network) {}

 private:
  void Step(absl::Span<const DirectionReturn> returns, double progress, uint64_t iteration,
            absl::Span<double> parameters, UpdateStats* stats) override;
};

}  // namespace skein
