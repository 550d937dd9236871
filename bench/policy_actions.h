// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "policy/policy.h"
#include "skein/v1/config.pb.h"

namespace skein {

// Records the actions of a checkpoint's policy, with its noise, in episodes 0 .. `episodes` - 1 of environments 0 ..
// `envs` - 1 of a run of `config`. Returns for each environment [episodes x steps of an episode, D]. Uses one core.
// Errors as LoadCheckpointPolicy. InvalidArgument: the environment has discrete actions or several agents, or ends
// episodes before their time limit.
absl::StatusOr<std::vector<std::vector<float>>> RecordPolicyActions(const std::string& checkpoint,
                                                                    const v1::RunConfig& config, uint32_t envs,
                                                                    uint32_t episodes);

// Records the actions of `threads` x `episodes` directions of the first iteration of a search of `config`, with the
// plus sign, as they are played by actors: those of thread i are of environment i, episodes 0 .. `episodes` - 1. Errors
// as above.
absl::StatusOr<std::vector<std::vector<float>>> RecordDirectionActions(const Policy& policy,
                                                                       const v1::RunConfig& config, uint32_t threads,
                                                                       uint32_t episodes);

}  // namespace skein
