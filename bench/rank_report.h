// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "bench/report.h"
#include "bench/statistics.h"

// What summing gradients over learner ranks costs.   figures of each rank -> rows -> summary, table
namespace skein {

// One crew's figures of one round, from what RankUpdates::Run says on each of its ranks, summing and alone. A crew has
// taken as long as its slowest rank. Rates are of all ranks together.
//   device                              rank 0's
//   samples_per_second, limit_samples_per_second (alone), ratio
//   seconds_per_update, limit_seconds_per_update, added_seconds_per_update
//   gradient_steps_per_update, added_microseconds_per_step
//   all_reduce_microseconds_per_step    from its first start to its last end, mean of the ranks
//   exposed_microseconds_per_step       of these, after backward
//   hidden_share                        1 - exposed / all-reduce, at least 0
//   all_reduces_per_step, bytes_sent_per_step   of one rank
// REQUIRES: as many of both, at least one, with times and counts > 0.
Json CombineRanks(const std::vector<Json>& summing, const std::vector<Json>& alone);

// Adds to rows with "learners" and "samples_per_second", all of one round and size, the "efficiency": samples/s of a
// learner over those of a single one, which sums nothing. Nothing where none has one learner.
void AddEfficiency(std::vector<Json>* rows);

// {"combinations": [...]}: for each pair of "learners" and "parameters", in the order of their first rows, these,
// "hidden" and "device", then what Summarize gives.
Json SummarizeRanks(const std::vector<Json>& rows);

// Machine, then one line for each combination of the summary.
std::string FormatRankReport(const Report& report, const std::string& heading);

}  // namespace skein
