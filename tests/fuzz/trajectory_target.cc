// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <memory>

#include "base/number/number_bounds.h"
#include "learner/collect/batch_assembler.h"
#include "learner/collect/wire_batch.h"
#include "tests/fuzz/shapes.h"
#include "tests/fuzz/targets.h"

namespace skein::fuzz {
namespace {

// Each piece in memory of its own size, so that a read beyond it is seen.
struct Received {
  Received(absl::string_view bytes, size_t piece_bytes) {
    if (piece_bytes == 0) piece_bytes = std::max<size_t>(bytes.size(), 1);
    for (size_t at = 0; at < bytes.size(); at += piece_bytes) {
      const absl::string_view piece = bytes.substr(at, piece_bytes);
      memory.push_back(std::make_unique<char[]>(piece.size()));
      std::copy(piece.begin(), piece.end(), memory.back().get());
      pieces.emplace_back(memory.back().get(), piece.size());
    }
  }
  std::vector<std::unique_ptr<char[]>> memory;
  Pieces pieces;
};

std::vector<StagedBatch>& Stagings() {
  static auto* const stagings = [] {
    auto* all = new std::vector<StagedBatch>;
    for (const FragmentShape& shape : Shapes()) all->emplace_back(shape, 1);
    return all;
  }();
  return *stagings;
}

}  // namespace

bool FuzzTrajectory(absl::string_view input) {
  if (input.size() < 2) return false;
  const size_t run = static_cast<unsigned char>(input[0]) % Shapes().size();
  const Received received(input.substr(2), static_cast<unsigned char>(input[1]));
  const auto request = WireRequest::Parse(received.pieces);
  if (!request.ok()) return false;
  Check(v1::CollectRequest().ParseFromArray(input.data() + 2, static_cast<int>(input.size() - 2)),
        "what WireRequest accepts is a CollectRequest");
  if (!request->has_batch) return request->other.message_case() != v1::CollectRequest::MESSAGE_NOT_SET;
  for (const WireTensor& tensor : request->batch.tensors) {
    Check(tensor.bytes <= input.size(), "a tensor's data lie in its message");
  }
  CheckedBatch checked;
  const absl::Status status = CheckBatch(request->batch, Shapes()[run], &checked);
  Check(status.ok() || absl::IsInvalidArgument(status), "a bad batch is InvalidArgument");
  if (!status.ok()) return false;
  StagedBatch& staged = Stagings()[run];
  staged.Reset();
  if (!staged.Place(0, 0, checked).ok()) return false;
  staged.Seal();
  Check(FindBeyond(staged.obs.data(), staged.obs.size(), kNumberBound) == staged.obs.size(),
        "what is trained on is within its bound");
  Check(staged.final_index.size() * static_cast<size_t>(Shapes()[run].spec.obs_size()) == staged.final_obs.size(),
        "each truncated episode has a last observation");
  return true;
}

}  // namespace skein::fuzz
