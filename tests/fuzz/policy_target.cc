// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <limits>

#include "policy/snapshot.h"
#include "tests/fuzz/samples.h"
#include "tests/fuzz/targets.h"

namespace skein::fuzz {

bool FuzzPolicy(absl::string_view input) {
  v1::PolicySnapshot snapshot;
  if (input.empty() || !snapshot.ParseFromArray(input.data() + 1, static_cast<int>(input.size() - 1))) return false;
  if (input[0] & 1) snapshot.set_digest(SnapshotDigest(snapshot));
  const auto policy = ReadSnapshot(snapshot, SamplePolicy());
  if (!policy.ok()) {
    const absl::Status& status = policy.status();
    Check(absl::IsInvalidArgument(status) || absl::IsDataLoss(status), "a bad policy is InvalidArgument or DataLoss");
    return false;
  }
  const float obs[2] = {};
  float head = std::numeric_limits<float>::quiet_NaN();
  (*policy)->Act(obs, nullptr, 1, &head, nullptr);
  Check(!std::isnan(head), "a policy acts");
  return true;
}

}  // namespace skein::fuzz
