// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "policy/policy.h"
#include "skein/v1/policy.pb.h"

// Policy snapshots as they are sent.   learner: network -> MakeSnapshot -> wire -> ReadSnapshot -> Policy :actor
namespace skein {

// Names of the normaliser's tensors in a snapshot; they follow those of PolicyParameters.
inline constexpr char kNormalizerMean[] = "obs_normalizer.mean";
inline constexpr char kNormalizerInvStd[] = "obs_normalizer.inv_std";

// XXH3-64 over names and bytes of the snapshot's tensors in order.
uint64_t SnapshotDigest(const v1::PolicySnapshot& snapshot);

// Reads every form that MakeSnapshot writes (learner/network/policy_snapshot.h). InvalidArgument: a tensor is missing,
// superfluous, of the wrong shape, not finite, or its compressed data are damaged; DataLoss: the digest differs.
absl::StatusOr<std::shared_ptr<const Policy>> ReadSnapshot(const v1::PolicySnapshot& snapshot, const PolicySpec& spec);

}  // namespace skein
