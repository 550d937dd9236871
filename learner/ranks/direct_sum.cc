// SPDX-License-Identifier: Apache-2.0
#include "learner/ranks/direct_sum.h"

#include <torch/types.h>
#include <torch/utils.h>

#include <cstring>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace skein {
namespace {

absl::string_view Bytes(const torch::Tensor& tensor) {
  return absl::string_view(static_cast<const char*>(tensor.data_ptr()), tensor.nbytes());
}

// Sets `own`, rank `rank`'s part, to the sum of all parts. `parts`, by rank, are used up.
void Sum(size_t rank, std::vector<std::string>* parts, torch::Tensor own) {
  std::vector<torch::Tensor> in_order;
  for (size_t i = 0; i < parts->size(); ++i) {
    in_order.push_back(i == rank ? own : torch::from_blob((*parts)[i].data(), own.sizes(), own.options()));
  }
  torch::Tensor sum = in_order[0];
  if (own.scalar_type() == torch::kBFloat16) sum = sum.to(torch::kFloat32);
  for (size_t i = 1; i < in_order.size(); ++i) sum.add_(in_order[i]);
  if (!sum.is_same(own)) own.copy_(sum);
}

}  // namespace

DirectSum::DirectSum(PeerMesh* mesh, torch::Tensor tensor)
    : mesh_(*mesh),
      flat_(tensor.view({-1})),
      in_pieces_(mesh_.size() > 2 && static_cast<int64_t>(flat_.nbytes()) * (mesh_.size() - 1) > kWholeBytes) {
  const auto own = static_cast<size_t>(mesh_.rank());
  std::vector<absl::string_view> to;
  for (int rank = 0; rank < mesh_.size(); ++rank) to.push_back(Bytes(in_pieces_ ? Piece(rank) : flat_));
  const std::vector<size_t> expected(to.size(), to[own].size());
  to[own] = {};
  exchange_ = mesh_.StartEach(to, expected);
}

torch::Tensor DirectSum::Piece(int rank) const {
  const int64_t begin = flat_.numel() * rank / mesh_.size(), end = flat_.numel() * (rank + 1) / mesh_.size();
  return flat_.narrow(0, begin, end - begin);
}

absl::Status DirectSum::Wait(absl::Time deadline) {
  const torch::NoGradGuard no_grad;
  const auto own = static_cast<size_t>(mesh_.rank());
  if (const absl::Status status = mesh_.Wait(*exchange_, deadline); !status.ok()) return status;
  const torch::Tensor mine = in_pieces_ ? Piece(mesh_.rank()) : flat_;
  Sum(own, &exchange_->messages, mine);
  if (!in_pieces_) return absl::OkStatus();

  std::vector<absl::string_view> to(exchange_->messages.size(), Bytes(mine));
  to[own] = {};
  std::vector<size_t> expected;
  for (int rank = 0; rank < mesh_.size(); ++rank) expected.push_back(Piece(rank).nbytes());
  exchange_ = mesh_.StartEach(to, expected);
  if (const absl::Status status = mesh_.Wait(*exchange_, deadline); !status.ok()) return status;
  for (int rank = 0; rank < mesh_.size(); ++rank) {
    const std::string& piece = exchange_->messages[static_cast<size_t>(rank)];
    std::memcpy(Piece(rank).data_ptr(), piece.data(), piece.size());  // None from this rank itself.
  }
  return absl::OkStatus();
}

}  // namespace skein
