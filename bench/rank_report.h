// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "bench/report.h"
#include "bench/statistics.h"

// Computes the cost of summing gradients over learner ranks.   measurements of each rank -> rows -> summary, table
namespace skein {

inline constexpr char kSampleRate[] = "samples_per_second", kTokenRate[] = "tokens_per_second";

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

// The same of ranks of `skein fit`, from the results of FitRankSteps::Run.
//   device, tokens_per_second, limit_tokens_per_second (alone), ratio
//   seconds_per_step, limit_seconds_per_step, added_microseconds_per_step
//   data_wait_share                     of the time with summing, mean of the ranks
// REQUIRES: as CombineRanks.
Json CombineFitRanks(const std::vector<Json>& summing, const std::vector<Json>& alone);

// Adds "efficiency" to rows of one round and size that have "learners" and `rate`: the rate per learner divided by
// that of a single learner, which sums nothing. Adds nothing if no row has one learner.
void AddEfficiency(const std::string& rate, std::vector<Json>* rows);

// What is shown of rows.
struct RankTable {
  std::string rate;
  std::vector<std::string> combination;  // Keys that tell rows of different crews apart.
  std::vector<Column> columns;
};
const RankTable& LearnerRankTable();
const RankTable& FitRankTable();

// {"combinations": [...]}: for each different combination, in the order of their first rows, its keys, then the output
// of Summarize.
Json SummarizeRanks(const RankTable& table, const std::vector<Json>& rows);

// Machine, then one line for each combination of the summary.
std::string FormatRankReport(const RankTable& table, const Report& report, const std::string& heading);

}  // namespace skein
