// SPDX-License-Identifier: Apache-2.0
#include "learner/distributed/direct_sum.h"

#include <torch/torch.h>

#include <cstring>
#include <string>
#include <vector>

namespace skein {
namespace {

std::string Bytes(const torch::Tensor& tensor) {
  return std::string(static_cast<const char*>(tensor.data_ptr()), tensor.nbytes());
}

void Sum(std::vector<std::string>* parts, torch::Tensor sum) {
  const auto part = [&](size_t rank) { return torch::from_blob((*parts)[rank].data(), sum.sizes(), sum.options()); };
  if (sum.scalar_type() == torch::kBFloat16) {
    torch::Tensor wide = part(0).to(torch::kFloat32);
    for (size_t rank = 1; rank < parts->size(); ++rank) wide.add_(part(rank).to(torch::kFloat32));
    sum.copy_(wide);
    return;
  }
  sum.copy_(part(0));
  for (size_t rank = 1; rank < parts->size(); ++rank) sum.add_(part(rank));
}

}  // namespace

DirectSum::DirectSum(PeerMesh* mesh, torch::Tensor tensor)
    : mesh_(*mesh),
      flat_(tensor.view({-1})),
      in_pieces_(mesh_.size() > 2 && static_cast<int64_t>(flat_.nbytes()) * (mesh_.size() - 1) > kDirectBytes) {
  if (!in_pieces_) {
    exchange_ = mesh_.Start(Bytes(flat_));
    return;
  }
  std::vector<std::string> to;
  for (int rank = 0; rank < mesh_.size(); ++rank) to.push_back(Bytes(Piece(rank)));
  const std::vector<size_t> expected(to.size(), Piece(mesh_.rank()).nbytes());
  exchange_ = mesh_.StartEach(to, expected);
}

torch::Tensor DirectSum::Piece(int rank) const {
  const int64_t begin = flat_.numel() * rank / mesh_.size(), end = flat_.numel() * (rank + 1) / mesh_.size();
  return flat_.narrow(0, begin, end - begin);
}

absl::Status DirectSum::Wait(absl::Time deadline) {
  const torch::NoGradGuard no_grad;
  if (const absl::Status status = mesh_.Wait(*exchange_, deadline); !status.ok()) return status;
  const torch::Tensor mine = in_pieces_ ? Piece(mesh_.rank()) : flat_;
  Sum(&exchange_->messages, mine);
  if (!in_pieces_) return absl::OkStatus();

  std::vector<size_t> expected;
  for (int rank = 0; rank < mesh_.size(); ++rank) expected.push_back(Piece(rank).nbytes());
  exchange_ = mesh_.StartEach(std::vector<std::string>(expected.size(), Bytes(mine)), expected);
  if (const absl::Status status = mesh_.Wait(*exchange_, deadline); !status.ok()) return status;
  for (int rank = 0; rank < mesh_.size(); ++rank) {
    const std::string& piece = exchange_->messages[static_cast<size_t>(rank)];
    std::memcpy(Piece(rank).data_ptr(), piece.data(), piece.size());
  }
  return absl::OkStatus();
}

}  // namespace skein
