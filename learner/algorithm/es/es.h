// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "learner/algorithm/directions/direction_search.h"

// Evolution strategies, an algorithm.
namespace skein {

// The ranks of `values`, from -0.5 (the smallest) to 0.5: rank / (n - 1) - 0.5. Equal values share the mean of their
// ranks; a single value has 0. Salimans et al. 2017, section 2.1 ("fitness shaping").
std::vector<double> CenteredRanks(absl::Span<const double> values);

// Evolution strategies, Salimans, Ho, Chen, Sidor and Sutskever 2017, "Evolution strategies as a scalable alternative
// to reinforcement learning", algorithm 2, with mirrored sampling, ranks u in place of returns, and weight decay:
//   g = 1 / (2 n sigma) sum over n directions (u+ - u-) epsilon - weight_decay theta;   theta <- Adam ascends g
class Es final : public DirectionSearch {
 public:
  // As DirectionSearch.
  Es(const v1::RunConfig& config, const ActorCriticOptions& network);

 private:
  void Step(absl::Span<const DirectionReturn> returns, double progress, uint64_t iteration,
            absl::Span<double> parameters, UpdateStats* stats) override;
  StateTensors StepState() const override;
  void RestoreStep(const StateTensors& state) override;

  // Adam, Kingma and Ba 2015, algorithm 1.
  int64_t steps_ = 0;
  std::vector<double> first_moment_, second_moment_;
};

}  // namespace skein
