// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "learner/ranks/collective.h"

namespace skein {

// Connects a group of `parts` members, of which each rank has some: contiguous, in order of rank, as many on each rank
// as ShareOfRank gives it. Returns this rank's. Each is for a thread of its own, since all members make the same calls.
// All ranks call it; `ranks` null: a single rank, which has all parts. `timeout` as Collective::Options::timeout.
// InvalidArgument: there are more ranks than parts. Others as Collective's and TcpStore's.
absl::StatusOr<std::vector<std::unique_ptr<Collective>>> ConnectParts(Collective* ranks, uint32_t parts,
                                                                      absl::Duration timeout);

}  // namespace skein
