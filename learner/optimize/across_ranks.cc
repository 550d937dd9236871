// SPDX-License-Identifier: Apache-2.0
#include "learner/optimize/across_ranks.h"

#include <torch/types.h>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace skein {
namespace {

torch::Tensor Row(std::vector<int64_t> values) { return torch::tensor(std::move(values), torch::kInt64); }

}  // namespace

absl::Status SumOverRanks(Collective* collective, std::vector<double>* values) {
  if (collective == nullptr || values->empty()) return absl::OkStatus();
  return collective->AllReduce(
      torch::from_blob(values->data(), {static_cast<int64_t>(values->size())}, torch::kFloat64));
}

absl::StatusOr<RankMoments> MergeOverRanks(Collective* collective, const RankMoments& mine) {
  if (collective == nullptr) return mine;
  const int64_t size = mine.moments.mean().size(0);
  const torch::Tensor head =
      torch::tensor(std::vector<double>{mine.finite ? 1.0 : 0.0, mine.moments.count()}, torch::kFloat64);
  const auto all = collective->Gather(torch::cat({head, mine.moments.mean(), mine.moments.variance()}));
  if (!all.ok()) return all.status();
  RankMoments merged{RunningMoments(size), true};
  for (const torch::Tensor& row : all->unbind()) {
    if (row[0].item<double>() == 0) merged.finite = false;
    RunningMoments of_rank(size);
    of_rank.Restore(row[1].item<double>(), row.narrow(0, 2, size), row.narrow(0, 2 + size, size));
    merged.moments.Merge(of_rank);
  }
  return merged;
}

absl::Status CheckShares(Collective* collective, const ColumnShare& mine) {
  if (collective == nullptr) {
    if (mine.offset == 0 && mine.columns == mine.total) return absl::OkStatus();
    return absl::FailedPreconditionError(absl::StrCat("the batch of a single rank has columns ", mine.offset, " to ",
                                                      mine.offset + mine.columns, " of ", mine.total,
                                                      ", want all of them"));
  }
  const auto all = collective->Gather(Row({mine.steps, mine.total, mine.iteration, mine.offset, mine.columns}));
  if (!all.ok()) return all.status();
  int64_t next = 0;
  for (int64_t rank = 0; rank < collective->size(); ++rank) {
    const int64_t* row = all->data_ptr<int64_t>() + 5 * rank;
    if (row[0] != mine.steps || row[1] != mine.total || row[2] != mine.iteration) {
      return absl::FailedPreconditionError(absl::StrFormat(
          "rank %d has a batch of %d steps and %d columns for iteration %d, rank %d one of %d and %d for "
          "%d; all ranks must train on the same one",
          rank, row[0], row[1], row[2], collective->rank(), mine.steps, mine.total, mine.iteration));
    }
    if (row[3] != next) {
      return absl::FailedPreconditionError(
          absl::StrFormat("rank %d has columns from %d on, want from %d on", rank, row[3], next));
    }
    next += row[4];
  }
  if (next == mine.total) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrFormat("all ranks together have %d columns, want %d", next, mine.total));
}

absl::Status CheckEqualDigests(Collective* collective, uint64_t mine) {
  if (collective == nullptr) return absl::OkStatus();
  const auto all = collective->Gather(Row({static_cast<int64_t>(mine)}));
  if (!all.ok()) return all.status();
  const int64_t* digests = all->data_ptr<int64_t>();
  for (int rank = 1; rank < collective->size(); ++rank) {
    if (digests[rank] == digests[0]) continue;
    return absl::InternalError(absl::StrFormat(
        "the ranks' parameters differ: rank 0 has digest %016x, rank %d has %016x; end the learner and resume from its "
        "last checkpoint",
        static_cast<uint64_t>(digests[0]), rank, static_cast<uint64_t>(digests[rank])));
  }
  return absl::OkStatus();
}

}  // namespace skein
