// SPDX-License-Identifier: Apache-2.0
#include "learner/ranks/rank_environment.h"

#include <cstdlib>

#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace skein {
namespace {

struct Names {
  const char *rank, *size, *local_rank;
};
constexpr Names kTorchrun = {"RANK", "WORLD_SIZE", "LOCAL_RANK"};
constexpr Names kSlurm = {"SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "SLURM_LOCALID"};

absl::StatusOr<int> ReadCount(const EnvironmentLookup& lookup, const Names& names, const char* name) {
  const std::optional<std::string> text = lookup(name);
  if (!text) {
    return absl::InvalidArgumentError(
        absl::StrCat(name, " is not set; a rank has all of ", names.rank, ", ", names.size, " and ", names.local_rank));
  }
  int value = 0;
  if (!absl::SimpleAtoi(*text, &value) || value < 0) {
    return absl::InvalidArgumentError(absl::StrCat(name, "=\"", *text, "\": want a number, 0 or more"));
  }
  return value;
}

absl::Status WantBelow(const char* name, int value, const Names& names, int size) {
  if (value < size) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(name, "=", value, ": want less than ", names.size, "=", size));
}

absl::StatusOr<RankEnvironment> ReadSet(const EnvironmentLookup& lookup, const Names& names) {
  const auto rank = ReadCount(lookup, names, names.rank);
  if (!rank.ok()) return rank.status();
  const auto size = ReadCount(lookup, names, names.size);
  if (!size.ok()) return size.status();
  const auto local_rank = ReadCount(lookup, names, names.local_rank);
  if (!local_rank.ok()) return local_rank.status();
  for (const absl::Status& status :
       {WantBelow(names.rank, *rank, names, *size), WantBelow(names.local_rank, *local_rank, names, *size)}) {
    if (!status.ok()) return status;
  }
  return RankEnvironment{*rank, *size, *local_rank};
}

}  // namespace

absl::StatusOr<RankEnvironment> ReadRankEnvironment(const EnvironmentLookup& lookup) {
  for (const char* name : {kTorchrun.rank, kTorchrun.size, kTorchrun.local_rank}) {
    if (lookup(name)) return ReadSet(lookup, kTorchrun);
  }
  // Slurm's other variables are also set for a job without a step.
  if (lookup(kSlurm.size)) return ReadSet(lookup, kSlurm);
  return RankEnvironment();
}

absl::StatusOr<RankEnvironment> ReadRankEnvironment() {
  return ReadRankEnvironment([](const std::string& name) -> std::optional<std::string> {
    const char* const value = std::getenv(name.c_str());
    if (value == nullptr) return std::nullopt;
    return value;
  });
}

}  // namespace skein
