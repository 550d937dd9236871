// SPDX-License-Identifier: Apache-2.0
#include "trajectory/pieces.h"

#include <algorithm>
#include <cstring>

namespace skein {

PieceReader::PieceReader(const Pieces& pieces, size_t offset)
    : piece_(pieces.data()), end_(pieces.data() + pieces.size()) {
  Skip(offset);
}

absl::Span<const char> PieceReader::Run() const {
  return piece_ == end_ ? absl::Span<const char>() : piece_->subspan(at_);
}

void PieceReader::Skip(size_t size) {
  at_ += size;
  while (piece_ != end_ && at_ >= piece_->size()) at_ -= piece_++->size();
}

void PieceReader::Read(void* to, size_t size) {
  for (char* out = static_cast<char*>(to); size > 0;) {
    const absl::Span<const char> now = Run().first(std::min(size, Run().size()));
    std::memcpy(out, now.data(), now.size());
    out += now.size();
    size -= now.size();
    Skip(now.size());
  }
}

}  // namespace skein
