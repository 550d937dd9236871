// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "learner/ranks/collective.h"
#include "learner/ranks/rank_environment.h"

// Connects the ranks of `skein fit`, from what torchrun, Slurm or `skein fit --learners` tells them.
namespace skein {

// Where rank 0 is to be reached.
struct MeetingPlace {
  std::string host;
  int port = 0;
};

// MASTER_ADDR and MASTER_PORT; under torchrun, whose own store is at that port, the next port. With Slurm's variables:
// the first host of SLURM_STEP_NODELIST (or of SLURM_JOB_NODELIST) and a port made of the numbers of job and step.
// InvalidArgument: none of these is set, or one is not valid.
absl::StatusOr<MeetingPlace> FindMeetingPlace(const EnvironmentLookup& lookup);

// "n[03-07,9],m1" -> "n03". Empty: it is not of this form.
std::string FirstHostOf(const std::string& node_list);

// This process among the ranks.
struct FitRanks {
  RankEnvironment place;
  std::unique_ptr<Collective> collective;  // Null: a single rank.
};
// Reads the environment and waits for the other ranks. Errors as ReadRankEnvironment, TcpStore and Collective::Connect.
absl::StatusOr<FitRanks> JoinRanks(const std::string& device, absl::Duration timeout);

// Does `work` on rank 0, then on the first rank of each other node, then on the others, so that what a rank makes in a
// shared folder is made once. Errors: the rank's own; Aborted if another rank's failed. While a rank works, the others
// wait without a limit.
absl::Status InTurn(const FitRanks& ranks, const std::function<absl::Status()>& work);

}  // namespace skein
