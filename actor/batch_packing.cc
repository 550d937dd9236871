// SPDX-License-Identifier: Apache-2.0
#include "actor/batch_packing.h"

#include <string>

#include "base/number/tensor_packing.h"

namespace skein {
namespace {

bool IsObserved(const std::string& name) {
  return name == "obs" || name == "final_obs" || name == "state" || name == "final_state";
}

}  // namespace

void PackBatch(const v1::TransportConfig& transport, v1::TrajectoryBatch* batch) {
  const bool narrows = transport.trajectory_precision() == v1::PRECISION_BF16;
  const bool compresses = transport.trajectory_compression() == v1::COMPRESSION_ZSTD;
  if (!narrows && !compresses) return;
  for (v1::Tensor& tensor : *batch->mutable_tensors()) {
    if (narrows && IsObserved(tensor.name())) Narrow(&tensor);
    if (compresses) Compress(&tensor);
  }
}

}  // namespace skein
