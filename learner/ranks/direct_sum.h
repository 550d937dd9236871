// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <torch/types.h>

#include <cstdint>
#include <memory>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "learner/ranks/peer_mesh.h"

namespace skein {

// Tensors of up to so many bytes the calling thread exchanges itself. Gloo's threads hand work on three times, which
// costs a quarter of a millisecond on idle cores and several on busy ones.
constexpr int64_t kDirectBytes = 4 << 20;
// Up to so many bytes to send, each rank has the whole tensor from all others: one way instead of two.
constexpr int64_t kWholeBytes = 256 << 10;

// An all-reduce by the calling thread, of a tensor on the CPU.   PeerMesh::Start -> sum in the order of ranks
// Small tensors go to all ranks. Of others, each rank sums a piece and sends it to all, so that a rank sends
// 2 (W-1)/W of the tensor. Either way every rank gets the same bits. bfloat16 is summed in float32 and rounded once.
class DirectSum {
 public:
  // Begins to send. `tensor` is contiguous; untouched until Wait, which replaces it by the sum. `mesh` outlives this.
  DirectSum(PeerMesh* mesh, torch::Tensor tensor);
  // Once. Errors: as PeerMesh::Wait's.
  absl::Status Wait(absl::Time deadline);

 private:
  // The part that rank `rank` sums.
  torch::Tensor Piece(int rank) const;

  PeerMesh& mesh_;
  torch::Tensor flat_;
  const bool in_pieces_;
  std::shared_ptr<PeerMesh::Exchange> exchange_;
};

}  // namespace skein
