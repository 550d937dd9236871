// SPDX-License-Identifier: Apache-2.0
#include "learner/collect/wire_batch.h"

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>
#include <google/protobuf/wire_format_lite.h>

#include <algorithm>
#include <cstring>
#include <iterator>

#include "absl/strings/str_cat.h"
#include "base/number/bfloat16.h"
#include "base/number/number_bounds.h"
#include "learner/collect/checked_copy.h"

namespace skein {
namespace {

using google::protobuf::internal::WireFormatLite;
using google::protobuf::io::CodedInputStream;

// An empty tensor is two bytes on the wire and many more here; so is an extent of a shape, or a field nobody knows.
constexpr size_t kMaxTensors = 64;
constexpr size_t kMaxHeaderBytes = 4096;  // Of a batch without its tensors, and of a tensor without its data.
constexpr size_t kMaxSmallMessageBytes = 64 << 10;
// CodedInputStream would take a longer one and forget its upper bits; protobuf's own parser does not.
constexpr int kMaxTagBytes = 5;

// Pieces as protobuf reads them.
class PieceStream final : public google::protobuf::io::ZeroCopyInputStream {
 public:
  explicit PieceStream(const Pieces& pieces) : pieces_(pieces) {}

  bool Next(const void** data, int* size) override {
    while (back_ == 0 && next_ < pieces_.size() && pieces_[next_].empty()) ++next_;
    if (back_ == 0 && next_ == pieces_.size()) return false;
    const absl::Span<const char> piece = back_ > 0 ? pieces_[next_ - 1] : pieces_[next_++];
    const size_t left = back_ > 0 ? back_ : piece.size();
    *data = piece.data() + (piece.size() - left);
    *size = static_cast<int>(left);
    back_ = 0;
    count_ += static_cast<int64_t>(left);
    return true;
  }
  void BackUp(int count) override {
    back_ = static_cast<size_t>(count);
    count_ -= count;
  }
  bool Skip(int count) override {
    const void* data;
    int size = 0;
    while (count > 0 && Next(&data, &size)) {
      if (size > count) BackUp(size - count);
      count -= std::min(size, count);
    }
    return count == 0;
  }
  int64_t ByteCount() const override { return count_; }

 private:
  const Pieces& pieces_;
  size_t next_ = 0;
  size_t back_ = 0;  // Bytes at the end of the piece before next_ that were given back.
  int64_t count_ = 0;
};

// Copies one field to `out`, which may grow to `limit` bytes.
bool CopyField(CodedInputStream* in, uint32_t tag, size_t limit, std::string* out) {
  const size_t before = out->size();
  google::protobuf::io::StringOutputStream sink(out);
  google::protobuf::io::CodedOutputStream to(&sink);
  switch (WireFormatLite::GetTagWireType(tag)) {
    case WireFormatLite::WIRETYPE_LENGTH_DELIMITED: {
      int size = 0;
      if (!in->ReadVarintSizeAsInt(&size) || before + static_cast<size_t>(size) > limit) return false;
      std::string content;
      if (!in->ReadString(&content, size)) return false;
      to.WriteTag(tag);
      to.WriteVarint32(static_cast<uint32_t>(size));
      to.WriteString(content);
      return true;
    }
    case WireFormatLite::WIRETYPE_START_GROUP:
    case WireFormatLite::WIRETYPE_END_GROUP:
      return false;  // Of any size, and proto3 has none.
    default:
      return before < limit && WireFormatLite::SkipField(in, tag, &to);
  }
}

// Reads the fields up to the input's limit: `apart(size)` reads the content of each field number `number`, the others
// are copied to `rest` as they are, `rest_limit` bytes at most and one more field.
template <typename Apart>
bool ReadFields(CodedInputStream* in, int number, size_t rest_limit, std::string* rest, Apart apart) {
  const uint32_t apart_tag = WireFormatLite::MakeTag(number, WireFormatLite::WIRETYPE_LENGTH_DELIMITED);
  int begin = in->CurrentPosition();
  while (const uint32_t tag = in->ReadTag()) {
    if (in->CurrentPosition() - begin > kMaxTagBytes) return false;
    if (tag == apart_tag) {
      int size = 0;
      if (!in->ReadVarintSizeAsInt(&size) || !apart(size)) return false;
    } else if (!CopyField(in, tag, rest_limit, rest)) {
      return false;
    }
    begin = in->CurrentPosition();
  }
  return in->ConsumedEntireMessage();
}

// The same for a message within: `apart` is given its content, of `size` bytes.
template <typename Apart>
bool ReadMessage(CodedInputStream* in, int size, int number, std::string* rest, Apart apart) {
  const auto limit = in->PushLimit(size);
  if (in->BytesUntilLimit() != size) return false;  // It would reach beyond what encloses it.
  const bool ok = ReadFields(in, number, kMaxHeaderBytes, rest, apart) &&
                  in->BytesUntilLimit() == 0;  // Not at the end of the input.
  in->PopLimit(limit);
  return ok;
}

bool ReadTensor(CodedInputStream* in, int size, const Pieces& pieces, WireTensor* tensor) {
  std::string rest;
  const bool ok = ReadMessage(in, size, v1::Tensor::kDataFieldNumber, &rest, [&](int bytes) {
    tensor->bytes = static_cast<size_t>(bytes);
    const size_t at = static_cast<size_t>(in->CurrentPosition());
    if (!in->Skip(bytes)) return false;
    tensor->data = PieceReader(pieces, at);
    return true;
  });
  return ok && tensor->header.ParseFromString(rest);
}

bool ReadBatch(CodedInputStream* in, int size, const Pieces& pieces, WireBatch* batch) {
  std::string rest;
  const bool ok = ReadMessage(in, size, v1::TrajectoryBatch::kTensorsFieldNumber, &rest, [&](int bytes) {
    return batch->tensors.size() < kMaxTensors && ReadTensor(in, bytes, pieces, &batch->tensors.emplace_back());
  });
  return ok && batch->header.ParseFromString(rest);
}

}  // namespace

PieceReader::PieceReader(const Pieces& pieces, size_t offset)
    : piece_(pieces.data()), end_(pieces.data() + pieces.size()) {
  while (piece_ != end_ && offset >= piece_->size()) offset -= piece_++->size();
  at_ = offset;
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

size_t FloatReader::Read(size_t count, float bound, float* to) {
  if (bfloat16_) {
    uint16_t narrow[1024];
    for (size_t done = 0; done < count;) {
      const size_t now = std::min(count - done, std::size(narrow));
      data_.Read(narrow, now * sizeof(uint16_t));
      FromBfloat16(narrow, now, to + done);
      done += now;
    }
  } else {
    data_.Read(to, count * sizeof(float));
  }
  return FindBeyond(to, count, bound);
}

size_t FloatReader::ReadRows(size_t rows, size_t width, size_t stride, float bound, float* to) {
  size_t bad = rows * width;
  if (bad == 0) return 0;
  for (size_t row = 0; row < rows;) {
    // Rows that lie in one piece as they are can be looked at on their way.
    const size_t in_piece = bfloat16_ ? 0 : data_.Run().size() / (width * sizeof(float));
    const size_t now = std::clamp<size_t>(in_piece, 1, rows - row);
    size_t found;
    if (in_piece > 0) {
      found = CopyRowsAndFindBeyond(data_.Run().data(), now, width, stride, bound, to + row * stride);
      data_.Skip(now * width * sizeof(float));
    } else {
      found = Read(width, bound, to + row * stride);
    }
    if (found < now * width) bad = std::min(bad, row * width + found);
    row += now;
  }
  return bad;
}

absl::StatusOr<WireRequest> WireRequest::Parse(const Pieces& pieces) {
  WireRequest request;
  std::string rest;
  PieceStream stream(pieces);
  CodedInputStream in(&stream);
  const bool ok = ReadFields(&in, v1::CollectRequest::kBatchFieldNumber, kMaxSmallMessageBytes, &rest, [&](int size) {
    request.has_batch = true;
    request.batch = {};
    return ReadBatch(&in, size, pieces, &request.batch);
  });
  if (!ok || !request.other.ParseFromString(rest)) {
    return absl::InvalidArgumentError("message: is no CollectRequest");
  }
  if (request.has_batch && request.other.message_case() != v1::CollectRequest::MESSAGE_NOT_SET) {
    return absl::InvalidArgumentError("message: has a batch and something else");
  }
  return request;
}

}  // namespace skein
