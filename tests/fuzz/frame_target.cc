// SPDX-License-Identifier: Apache-2.0
#include <memory>
#include <vector>

#include "actor/frame_bytes.h"
#include "grpcpp/support/slice.h"
#include "tests/fuzz/targets.h"

namespace skein::fuzz {

bool FuzzFrame(absl::string_view input) {
  if (input.empty()) return false;
  const size_t header_bytes = static_cast<unsigned char>(input[0]);
  if (input.size() < 1 + header_bytes) return false;
  Fragment fragment;
  if (!fragment.header.ParseFromArray(input.data() + 1, static_cast<int>(header_bytes))) return false;
  fragment.block = std::make_shared<const std::string>(input.substr(1 + header_bytes));
  const grpc::ByteBuffer bytes = FrameBytes(fragment);
  std::vector<grpc::Slice> slices;
  Check(bytes.Dump(&slices).ok(), "the bytes can be read");
  Pieces pieces;
  for (const grpc::Slice& slice : slices) {
    pieces.emplace_back(reinterpret_cast<const char*>(slice.begin()), slice.size());
  }
  const auto frame = ReadFrame(pieces);
  Check(frame.ok() && frame->header.has_fragment(), "a fragment stays one");
  Check(frame->header.fragment().SerializeAsString() == fragment.header.SerializeAsString(),
        "the header stays as it is");
  std::string block(frame->block_bytes, '\0');
  PieceReader(frame->block).Read(block.data(), block.size());
  Check(block == *fragment.block, "what is read is what was sent");
  return true;
}

}  // namespace skein::fuzz
