// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "learner/network/normalizer.h"
#include "learner/ranks/collective.h"

// Small agreements of the ranks of one learner: sums and statistics of all ranks' data. A null collective is a
// single rank, for which each of these returns what it is given. Every rank gets the same bits. Errors as Collective's.
namespace skein {

// Replaces each value by its sum over the ranks.
absl::Status SumOverRanks(Collective* collective, std::vector<double>* values);

// What one rank's rows say.
struct RankMoments {
  RunningMoments moments;
  bool finite;  // None of the rows has a value that is not.
};
// Of all ranks' rows, merged by rank; finite if every rank's are.
absl::StatusOr<RankMoments> MergeOverRanks(Collective* collective, const RankMoments& mine);

// How a rank's columns lie in the run-wide batch of an iteration.
struct ColumnShare {
  int64_t steps;
  int64_t offset, columns;  // Its own: [offset, offset + columns) of `total`.
  int64_t total;
  int64_t iteration;
};
// FailedPrecondition, naming the ranks and numbers: steps, total or iteration differ, or the shares do not follow upon
// each other by rank and make up the total. A batch that a rank misunderstands would leave the others in a collective.
absl::Status CheckShares(Collective* collective, const ColumnShare& mine);

// Internal, naming ranks and digests: they differ.
absl::Status CheckEqualDigests(Collective* collective, uint64_t mine);

}  // namespace skein
