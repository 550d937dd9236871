// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "base/process/shutdown.h"
#include "bench/fit_data.h"
#include "bench/options.h"
#include "bench/rank_worker.h"
#include "skein/v1/fit.pb.h"

// skein bench fit --learners: the efficiency of training a model of sequences with several ranks.
namespace skein {

// One rank's configuration: batch_size and parts of `config` divided by `most`, at least 1; train.parts 0: one part.
v1::FitConfig OfOneRank(const v1::FitConfig& config, uint32_t most);

// Threads that compute the steps of a rank.
uint32_t FitThreads(const v1::FitTrainConfig& train);

// Measures as many ranks as each of `learners` says, prints the table and writes --json. `config`: of all ranks of the
// largest number. `what`: the sequences, in words. Errors as FitData::Open, RankCrew and WriteReport.
absl::Status RunFitRankBench(const BenchOptions& options, const v1::FitConfig& config, std::vector<int> learners,
                             uint32_t length, const std::string& what, const ShutdownSignal& shutdown);

// The work of kFitRankVerb.
absl::StatusOr<RankWork> MakeFitRankWork(const RankWorkerOptions& options, const RankPlace& place);

}  // namespace skein
