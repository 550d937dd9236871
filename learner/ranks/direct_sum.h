// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <torch/types.h>

#include <cstdint>
#include <memory>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "learner/ranks/peer_mesh.h"

// Sums a tensor over all ranks on the calling thread, which is faster than Gloo for small tensors.
namespace skein {

// Tensors of up to so many bytes are exchanged by the calling thread itself. Gloo passes work between threads three
// times, which costs a quarter of a millisecond on idle cores and several on busy ones.
constexpr int64_t kDirectBytes = 4 << 20;
// Up to so many bytes to send, each rank sends its whole tensor to all others: one exchange instead of two.
constexpr int64_t kWholeBytes = 256 << 10;

// An all-reduce by the calling thread, of a tensor on the CPU.   PeerMesh::StartEach -> sum in the order of ranks
// A small tensor is sent whole to all ranks. For a larger one, each of the W ranks sums one piece and sends the sum to
// all, so that a rank sends 2 (W-1)/W of the tensor. Either way every rank gets the same bits. bfloat16 is summed in
// float32 and rounded once.
class DirectSum {
 public:
  // Begins to send `tensor` (contiguous). It must not be accessed until Wait, which replaces it by the sum. `mesh` must
  // outlive this.
  DirectSum(PeerMesh* mesh, torch::Tensor tensor);
  // Call once. Errors as PeerMesh::Wait.
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
