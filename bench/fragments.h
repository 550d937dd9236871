// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "learner/collect/admission.h"
#include "learner/collect/batch_assembler.h"
#include "learner/collect/fragment_shape.h"
#include "skein/v1/config.pb.h"
#include "skein/v1/policy.pb.h"
#include "skein/v1/trajectory.pb.h"

// Trajectories as actors send them, made in this process.
namespace skein {

// One fragment of each of the first `blocks` blocks of environments, collected by a real runner with the policy of
// `snapshot`. Internal: Torch failed.
absl::StatusOr<std::vector<v1::TrajectoryBatch>> CollectFragments(const v1::RunConfig& config, const FragmentShape& shape,
                                                                  const v1::PolicySnapshot& snapshot, uint32_t blocks);

// Fragments, each in place of its block, as the trainer gets them. Internal: one is not of that shape.
absl::StatusOr<std::unique_ptr<StagedBatch>> StageFragments(const std::vector<v1::TrajectoryBatch>& fragments,
                                                            const FragmentShape& shape);

}  // namespace skein
