// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "learner/network/normalizer.h"
#include "learner/ranks/collective.h"

// Sums, merged statistics and consistency checks over the ranks of one learner. A null collective means a single rank;
// sums and statistics are then returned unchanged. Every rank gets the same bits. Errors as Collective's.
namespace skein {

// Replaces each value by its sum over the ranks.
absl::Status SumOverRanks(Collective* collective, std::vector<double>* values);

// Statistics of one rank's rows.
struct RankMoments {
  RunningMoments moments;
  bool finite;  // All values of all rows are finite.
};
// Statistics of all ranks' rows, merged in rank order; finite if every rank's rows are.
absl::StatusOr<RankMoments> MergeOverRanks(Collective* collective, const RankMoments& mine);

// The place of one rank's columns in the run-wide batch of an iteration.
struct ColumnShare {
  int64_t steps;
  int64_t offset, columns;  // The rank has columns [offset, offset + columns) of `total`.
  int64_t total;
  int64_t iteration;
};
// FailedPrecondition, naming the ranks and numbers: steps, total or iteration differ, or the shares in rank order are
// not contiguous or do not add up to the total. Without this check, such ranks would wait in different collectives.
absl::Status CheckShares(Collective* collective, const ColumnShare& mine);

// Internal, naming ranks and digests: the ranks' digests differ.
absl::Status CheckEqualDigests(Collective* collective, uint64_t mine);

}  // namespace skein
