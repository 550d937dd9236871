// SPDX-License-Identifier: Apache-2.0
#include "learner/network/policy_snapshot.h"

#include <torch/types.h>

#include "base/number/tensor_packing.h"
#include "learner/network/tensor_codec.h"
#include "policy/snapshot.h"

namespace skein {

v1::PolicySnapshot MakeSnapshot(uint64_t version, const ActorCritic& network, const ObsScale& scale,
                                const v1::TransportConfig& transport) {
  NamedTensors tensors = network.PolicyParameters();
  tensors.emplace_back(kNormalizerMean, scale.mean);
  tensors.emplace_back(kNormalizerInvStd, scale.inv_std);
  v1::PolicySnapshot snapshot;
  snapshot.set_version(version);
  for (const auto& [name, tensor] : tensors) {
    v1::Tensor* const wire = snapshot.add_tensors();
    EncodeTensor(name, tensor, wire);
    if (transport.policy_precision() == v1::PRECISION_BF16 && tensor.dim() > 1) Narrow(wire);
    if (transport.policy_compression() == v1::COMPRESSION_ZSTD) Compress(wire);
  }
  snapshot.set_digest(SnapshotDigest(snapshot));
  return snapshot;
}

}  // namespace skein
