// SPDX-License-Identifier: Apache-2.0
#include "trajectory/frame.h"

#include <cstdint>
#include <cstring>

#include "absl/strings/str_cat.h"

namespace skein {
namespace {

constexpr char kMagic[] = {'S', 'K', 'F', 2};  // The last byte is the frame's version.
constexpr size_t kHeadBytes = sizeof(kMagic) + sizeof(uint32_t);

size_t TotalBytes(const Pieces& pieces) {
  size_t bytes = 0;
  for (const auto& piece : pieces) bytes += piece.size();
  return bytes;
}

// The 32-bit number in four bytes, least significant first.
uint32_t LoadSize(const char* bytes) {
  uint32_t size = 0;
  for (int i = 3; i >= 0; --i) size = size << 8 | static_cast<unsigned char>(bytes[i]);
  return size;
}

void AppendSize(uint32_t size, std::string* out) {
  for (int i = 0; i < 4; ++i) out->push_back(static_cast<char>(size >> 8 * i));
}

std::string Head(const std::string& header) {
  std::string head(kMagic, sizeof(kMagic));
  AppendSize(static_cast<uint32_t>(header.size()), &head);
  return head + header;
}

}  // namespace

std::string FrameHead(const v1::CollectRequest& header) { return Head(header.SerializeAsString()); }

std::string FrameHead(const v1::FragmentHeader& header) {
  v1::CollectRequest request;
  *request.mutable_fragment() = header;
  return FrameHead(request);
}

absl::StatusOr<Frame> ReadFrame(const Pieces& pieces) {
  const size_t total = TotalBytes(pieces);
  if (total < kHeadBytes) return absl::InvalidArgumentError("message: is no frame");
  PieceReader reader(pieces, 0);
  char head[kHeadBytes];
  reader.Read(head, sizeof(head));
  if (std::memcmp(head, kMagic, sizeof(kMagic) - 1) != 0) return absl::InvalidArgumentError("message: is no frame");
  if (head[3] != kMagic[3]) {
    return absl::InvalidArgumentError(
        absl::StrCat("message: is a frame of version ", static_cast<int>(head[3]), ", want ", int{kMagic[3]}));
  }
  const size_t size = LoadSize(head + sizeof(kMagic));
  if (size > kMaxHeaderBytes) {
    return absl::InvalidArgumentError(
        absl::StrCat("message: its header has ", size, " bytes, want at most ", kMaxHeaderBytes));
  }
  if (size > total - kHeadBytes) return absl::InvalidArgumentError("message: is cut off within its header");
  Frame frame;
  std::string header(size, '\0');
  reader.Read(header.data(), size);
  if (!frame.header.ParseFromString(header)) return absl::InvalidArgumentError("message: its header is damaged");
  frame.block = reader;
  frame.block_bytes = total - kHeadBytes - size;
  if (frame.block_bytes > 0 && !frame.header.has_fragment()) {
    return absl::InvalidArgumentError("message: has a block of fields and no fragment");
  }
  return frame;
}

std::optional<v1::Hello> HelloWithoutFrame(const Pieces& pieces) {
  if (TotalBytes(pieces) > kMaxHeaderBytes) return std::nullopt;
  std::string bytes(TotalBytes(pieces), '\0');
  PieceReader(pieces, 0).Read(bytes.data(), bytes.size());
  v1::CollectRequest request;
  if (!request.ParseFromString(bytes) || !request.has_hello()) return std::nullopt;
  return request.hello();
}

}  // namespace skein
