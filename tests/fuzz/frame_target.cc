// SPDX-License-Identifier: Apache-2.0
#include <memory>
#include <utility>
#include <vector>

#include "actor/request_bytes.h"
#include "grpcpp/support/slice.h"
#include "learner/collect/wire_batch.h"
#include "tests/fuzz/targets.h"

namespace skein::fuzz {
namespace {

// The batch as protobuf would have it.
v1::TrajectoryBatch Whole(const WireBatch& wire) {
  v1::TrajectoryBatch batch = wire.header;
  for (const WireTensor& tensor : wire.tensors) {
    v1::Tensor* added = batch.add_tensors();
    *added = tensor.header;
    std::string data(tensor.bytes, '\0');
    PieceReader(tensor.data).Read(data.data(), data.size());
    added->set_data(std::move(data));
  }
  return batch;
}

}  // namespace

bool FuzzRequestBytes(absl::string_view input) {
  auto request = std::make_shared<v1::CollectRequest>();
  if (!request->ParseFromArray(input.data(), static_cast<int>(input.size())) || !request->has_batch()) return false;
  request->DiscardUnknownFields();
  const grpc::ByteBuffer bytes = BatchBytes(request);
  std::vector<grpc::Slice> slices;
  Check(bytes.Dump(&slices).ok(), "the bytes can be read");
  Pieces pieces;
  for (const grpc::Slice& slice : slices) {
    pieces.emplace_back(reinterpret_cast<const char*>(slice.begin()), slice.size());
  }
  const auto read = WireRequest::Parse(pieces);
  if (!read.ok()) return false;  // More tensors than anybody needs.
  Check(read->has_batch, "a batch stays one");
  v1::TrajectoryBatch want = request->batch();
  want.mutable_stage_seconds();  // Is always sent.
  Check(Whole(read->batch).SerializeAsString() == want.SerializeAsString(), "what is read is what was sent");
  return true;
}

}  // namespace skein::fuzz
