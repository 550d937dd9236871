// SPDX-License-Identifier: Apache-2.0
#include "learner/sequence/gzip_file.h"

#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "base/process/system_error.h"

namespace skein {
namespace {

constexpr size_t kBuffer = size_t{1} << 18;
constexpr int kGzipOfAnyWindow = 15 + 16;

}  // namespace

GzipFile::GzipFile(int descriptor)
    : descriptor_(descriptor), buffer_(kBuffer), stream_(std::make_unique<z_stream_s>()) {}
GzipFile::~GzipFile() {
  if (inflates_) inflateEnd(stream_.get());
  close(descriptor_);
}

uint64_t GzipFile::bytes_used() const { return bytes_read_ - stream_->avail_in; }

absl::Status GzipFile::Fill() {
  ssize_t count = -1;
  do {
    count = read(descriptor_, buffer_.data(), buffer_.size());
  } while (count < 0 && errno == EINTR);
  if (count < 0) return SystemError(errno, "reading it");
  stream_->next_in = buffer_.data();
  stream_->avail_in = static_cast<unsigned>(count);
  bytes_read_ += static_cast<uint64_t>(count);
  return absl::OkStatus();
}

absl::Status GzipFile::Begin() {
  if (absl::Status s = Fill(); !s.ok()) return s;
  kind_ = Kind::kPlain;
  if (stream_->avail_in < 2 || buffer_[0] != 0x1f || buffer_[1] != 0x8b) return absl::OkStatus();
  const int code = inflateInit2(stream_.get(), kGzipOfAnyWindow);
  if (code != Z_OK) return absl::ResourceExhaustedError("no memory to decompress");
  inflates_ = true;
  kind_ = Kind::kCompressed;
  return absl::OkStatus();
}

absl::StatusOr<size_t> GzipFile::Copy(char* to, size_t size) {
  if (stream_->avail_in == 0) {
    if (absl::Status s = Fill(); !s.ok()) return s;
  }
  const size_t count = std::min<size_t>(size, stream_->avail_in);
  if (count > 0) std::memcpy(to, stream_->next_in, count);
  stream_->next_in += count;
  stream_->avail_in -= static_cast<unsigned>(count);
  return count;
}

absl::StatusOr<bool> GzipFile::BeginNextMember() {
  // Zeros fill up the last block of a tape.
  while (stream_->avail_in > 0 && *stream_->next_in == 0) ++stream_->next_in, --stream_->avail_in;
  if (stream_->avail_in == 0) return false;
  if (*stream_->next_in != 0x1f) return absl::DataLossError("other data follow the compressed ones");
  behind_member_ = false;
  inflateReset(stream_.get());
  return true;
}

absl::StatusOr<size_t> GzipFile::Inflate(char* to, size_t size) {
  stream_->next_out = reinterpret_cast<unsigned char*>(to);
  stream_->avail_out = static_cast<unsigned>(size);
  while (stream_->avail_out == size) {
    if (stream_->avail_in == 0) {
      if (absl::Status s = Fill(); !s.ok()) return s;
      if (stream_->avail_in == 0) {
        if (behind_member_) return 0;
        return absl::DataLossError("the compressed file ends here, before its end; is the copy complete?");
      }
    }
    if (behind_member_) {
      const auto another = BeginNextMember();
      if (!another.ok()) return another.status();
      if (!*another) continue;
    }
    const int code = inflate(stream_.get(), Z_NO_FLUSH);
    behind_member_ = code == Z_STREAM_END;
    if (code == Z_OK || code == Z_STREAM_END || code == Z_BUF_ERROR) continue;
    failed_ = absl::DataLossError(absl::StrCat("the compressed file is damaged (",
                                               stream_->msg != nullptr ? stream_->msg : "no reason given", ")"));
    break;
  }
  const size_t count = size - stream_->avail_out;
  if (count == 0) return failed_;
  return count;
}

absl::StatusOr<size_t> GzipFile::Read(char* to, size_t size) {
  if (!failed_.ok()) return failed_;
  if (kind_ == Kind::kUnknown) failed_ = Begin();
  if (!failed_.ok()) return failed_;
  auto count = kind_ == Kind::kPlain ? Copy(to, size) : Inflate(to, size);
  if (!count.ok()) failed_ = count.status();
  return count;
}

}  // namespace skein
