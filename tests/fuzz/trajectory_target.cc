// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <memory>

#include "base/number/tensor_packing.h"
#include "learner/collect/staged_columns.h"
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

struct Run {
  Schema schema;
  StagedColumns staged;
};

std::vector<Run>& Runs() {
  static auto* const runs = [] {
    auto* all = new std::vector<Run>;
    for (const FragmentShape& shape : Shapes()) all->push_back({MakeSchema(shape), StagedColumns(shape, 1)});
    return all;
  }();
  return *runs;
}

// What is trained on is within its field's bound.
void CheckColumn(const Columns& staged, const Columns::Column& column, const FragmentShape& shape) {
  int64_t elements = 1;
  for (const int64_t extent : staged.Dimensions(column)) elements *= extent;
  Check(elements * ElementSize(column.field.dtype) == static_cast<int64_t>(column.bytes.size()),
        "a column has the bytes of its dimensions");
  if (column.field.name == "final_index") return;
  Check(CheckValues(column.field, shape, column.bytes.data(), elements).ok(), "what is trained on is within its bound");
}

}  // namespace

bool FuzzTrajectory(absl::string_view input) {
  if (input.size() < 2) return false;
  const size_t number = static_cast<unsigned char>(input[0]) % Shapes().size();
  const Received received(input.substr(2), static_cast<unsigned char>(input[1]));
  const auto frame = ReadFrame(received.pieces);
  if (!frame.ok()) return false;
  Check(frame->block_bytes <= input.size(), "a block lies in its message");
  if (!frame->header.has_fragment()) return frame->header.message_case() != v1::CollectRequest::MESSAGE_NOT_SET;
  Run& run = Runs()[number];
  CheckedFragment checked;
  const absl::Status status = CheckFragment(*frame, run.schema, &checked);
  Check(status.ok() || absl::IsInvalidArgument(status), "a bad fragment is InvalidArgument");
  if (!status.ok()) return false;
  StagedColumns& staged = run.staged;
  staged.Reset();
  if (!staged.Place(0, 0, checked).ok()) return false;
  staged.Seal();
  for (const Columns::Column& column : staged.all()) CheckColumn(staged, column, run.schema.shape);
  Check(staged.values<int64_t>("final_index").size() * static_cast<size_t>(run.schema.shape.spec.obs_size()) ==
            staged.values<float>("final_obs").size(),
        "each truncated episode has a last observation");
  return true;
}

}  // namespace skein::fuzz
