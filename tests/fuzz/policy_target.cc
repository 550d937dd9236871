// SPDX-License-Identifier: Apache-2.0
#include <torch/types.h>

#include "policy/policy.h"
#include "tests/fuzz/samples.h"
#include "tests/fuzz/targets.h"

namespace skein::fuzz {

bool FuzzPolicy(absl::string_view input) {
  at::set_num_threads(1);
  v1::PolicySnapshot snapshot;
  if (input.empty() || !snapshot.ParseFromArray(input.data() + 1, static_cast<int>(input.size() - 1))) return false;
  if (input[0] & 1) snapshot.set_digest(SnapshotDigest(snapshot));
  const auto policy = Policy::FromSnapshot(snapshot, SampleNetwork());
  if (!policy.ok()) {
    const absl::Status& status = policy.status();
    Check(absl::IsInvalidArgument(status) || absl::IsDataLoss(status), "a bad policy is InvalidArgument or DataLoss");
    return false;
  }
  const torch::Tensor head = (*policy)->Head(torch::zeros({1, 2}));
  Check(head.numel() == 1, "a policy acts");
  return true;
}

}  // namespace skein::fuzz
