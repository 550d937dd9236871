// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "skein/v1/learner_service.pb.h"
#include "skein/v1/trajectory.pb.h"

// Trajectory batches as they lie in the buffers they were received into: tensors' elements are not copied out before it
// is known where they belong.   received pieces -> WireRequest::Parse -> CheckBatch -> StagedBatch::Place
namespace skein {

// A message's bytes in one or more pieces, in order. Views: whoever received them keeps them.
using Pieces = std::vector<absl::Span<const char>>;

// Reads on from one place among pieces that outlive it.
class PieceReader {
 public:
  PieceReader() = default;
  // At byte `offset` of all. REQUIRES: offset <= their total size.
  PieceReader(const Pieces& pieces, size_t offset);
  // Copies the next `size` bytes. REQUIRES: there are as many.
  void Read(void* to, size_t size);
  // The next bytes as far as they lie in one piece; empty: there are no more.
  absl::Span<const char> Run() const;
  // Goes on behind the next `size` bytes. REQUIRES: at most Run().size().
  void Skip(size_t size);

 private:
  const absl::Span<const char>* piece_ = nullptr;
  const absl::Span<const char>* end_ = nullptr;
  size_t at_ = 0;  // Within *piece_.
};

// Reads on among real numbers that lie there as float32 or bfloat16, as float32.
class FloatReader {
 public:
  FloatReader() = default;
  FloatReader(PieceReader data, bool bfloat16) : data_(data), bfloat16_(bfloat16) {}
  // Copies the next `rows` x `width` numbers to rows at `to`, `stride` apart. The first of them that FindBeyond finds,
  // or rows * width. REQUIRES: there are as many.
  size_t ReadRows(size_t rows, size_t width, size_t stride, float bound, float* to);

 private:
  // The same of the next numbers of one row.
  size_t Read(size_t count, float bound, float* to);

  PieceReader data_;
  bool bfloat16_ = false;
};

// A Tensor whose data stayed where they were.
struct WireTensor {
  v1::Tensor header;  // Without data.
  size_t bytes = 0;   // Of data.
  PieceReader data;   // At their first byte; copy it to read.
};

struct WireBatch {
  v1::TrajectoryBatch header;  // Without tensors.
  std::vector<WireTensor> tensors;
};

// A CollectRequest: either a batch or one of the small messages.
struct WireRequest {
  // InvalidArgument: not such a message, more than 64 tensors, both a batch and something else, or headers or a small
  // message larger than any need to be. Allocates little, whatever the message claims to hold: tensors' elements stay
  // where they are. `pieces` must outlive the result.
  static absl::StatusOr<WireRequest> Parse(const Pieces& pieces);

  bool has_batch = false;
  WireBatch batch;
  v1::CollectRequest other;  // Unless has_batch.
};

}  // namespace skein
