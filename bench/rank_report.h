// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "bench/report.h"
#include "bench/statistics.h"

// Computes the cost of summing gradients over learner ranks.   measurements of each rank -> rows -> summary, table
namespace skein {

// One crew's row of one round, from the results of RankUpdates::Run on each of its ranks, with summing and alone. A
// crew takes as long as its slowest rank. Rates are totals over all ranks.
//   device                              rank 0's
//   samples_per_second, limit_samples_per_second (alone), ratio
//   seconds_per_update, limit_seconds_per_update, added_seconds_per_update
//   gradient_steps_per_update, added_microseconds_per_step
//   all_reduce_microseconds_per_step    from its first start to its last end, mean of the ranks
//   exposed_microseconds_per_step       of these, after backward
//   hidden_share                        1 - exposed / all-reduce, at least 0
//   all_reduces_per_step, bytes_sent_per_step   of one rank
// REQUIRES: both lists have the same length, at least one, and times and counts > 0.
Json CombineRanks(const std::vector<Json>& summing, const std::vector<Json>& alone);

// Adds "efficiency" to rows of one round and size that have "learners" and "samples_per_second": samples/s per learner
// divided by those of a single learner, which sums nothing. Adds nothing if no row has one learner.
void AddEfficiency(std::vector<Json>* rows);

// {"combinations": [...]}: for each pair of "learners" and "parameters", in the order of their first rows, these two,
// "hidden" and "device", then the output of Summarize.
Json SummarizeRanks(const std::vector<Json>& rows);

// Machine, then one line for each combination of the summary.
std::string FormatRankReport(const Report& report, const std::string& heading);

}  // namespace skein
