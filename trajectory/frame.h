// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "skein/v1/learner_service.pb.h"
#include "trajectory/pieces.h"

// The messages that an actor sends to a learner: frames.
//   Fragment -> FrameHead + block ==Collect stream==> ReadFrame -> CheckFragment
// A frame is: four bytes of magic and version; the header's size in four bytes, little-endian; the header, which is a
// CollectRequest; and, if the header has a fragment, the fragment's block of fields until the end of the message.
namespace skein {

// A finished fragment in the form in which it is sent. Copies share the block.
struct Fragment {
  v1::FragmentHeader header;
  std::shared_ptr<const std::string> block;  // The header's `fields`, each from a multiple of kFieldAlignment on.
  uint64_t saved_bytes = 0;                  // Bytes that packing removed from the block.
};

// The env steps of a fragment.
inline uint64_t EnvSteps(const v1::FragmentHeader& header) {
  return header.env_steps() > 0 ? header.env_steps() : uint64_t{header.steps()} * header.group_envs();
}

// Largest header. A fragment's header has a few hundred bytes; a hello has more if the environment has many metrics.
inline constexpr size_t kMaxHeaderBytes = 16 << 10;

// The bytes of a frame before the block.
std::string FrameHead(const v1::CollectRequest& header);
std::string FrameHead(const v1::FragmentHeader& header);

// A received frame, whose block is not copied.
struct Frame {
  v1::CollectRequest header;
  PieceReader block;  // At the block's first byte; copy it to read.
  size_t block_bytes = 0;
};
// Reads a frame; copies only the header. `pieces` must outlive the result. InvalidArgument, "message: ...": not a
// frame, a frame of another version or cut off within its header, a header over kMaxHeaderBytes, or a block without a
// fragment.
absl::StatusOr<Frame> ReadFrame(const Pieces& pieces);

// The hello of an actor of protocol 1, which had no frames; nullopt: the message is something else.
std::optional<v1::Hello> HelloWithoutFrame(const Pieces& pieces);

}  // namespace skein
