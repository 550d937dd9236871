// SPDX-License-Identifier: Apache-2.0
#include "learner/sequence/line_reader.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/process/system_error.h"

namespace skein {
namespace {

constexpr size_t kChunk = size_t{1} << 18;

FileStamp StampOf(const struct stat& info) {
  return {static_cast<uint64_t>(info.st_size),
          static_cast<int64_t>(info.st_mtim.tv_sec) * 1'000'000'000 + info.st_mtim.tv_nsec,
          static_cast<uint64_t>(info.st_ino)};
}

}  // namespace

// zlib reads what is not compressed as it is.
struct LineReader::Stream {
  gzFile file = nullptr;
  ~Stream() {
    if (file != nullptr) gzclose_r(file);
  }
};

LineReader::LineReader(std::string path, FileStamp stamp, std::unique_ptr<Stream> stream)
    : path_(std::move(path)), stamp_(stamp), stream_(std::move(stream)) {}
LineReader::~LineReader() = default;

absl::StatusOr<std::unique_ptr<LineReader>> LineReader::Open(const std::string& path) {
  const int descriptor = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (descriptor < 0) return SystemError(errno, path);
  struct stat info = {};
  if (fstat(descriptor, &info) != 0 || !S_ISREG(info.st_mode)) {
    close(descriptor);
    return absl::InvalidArgumentError(absl::StrCat(path, ": want a file; this is no regular one"));
  }
  auto stream = std::make_unique<Stream>();
  stream->file = gzdopen(descriptor, "rb");
  if (stream->file == nullptr) {
    close(descriptor);
    return absl::ResourceExhaustedError(absl::StrCat(path, ": no memory to read it"));
  }
  gzbuffer(stream->file, kChunk);
  return std::unique_ptr<LineReader>(new LineReader(path, StampOf(info), std::move(stream)));
}

uint64_t LineReader::compressed_bytes_read() const {
  const auto offset = gzoffset(stream_->file);
  return offset < 0 ? 0 : static_cast<uint64_t>(offset);
}

absl::Status LineReader::Error(absl::string_view problem) const {
  return absl::DataLossError(absl::StrCat(path_, ":", std::max<uint64_t>(1, line_), ": ", problem));
}

absl::StatusOr<bool> LineReader::Fill() {
  if (used_ > 0) {
    buffer_.erase(0, used_);
    used_ = 0;
  }
  const size_t before = buffer_.size();
  buffer_.resize(before + kChunk);
  const int count = gzread(stream_->file, buffer_.data() + before, kChunk);
  buffer_.resize(before + static_cast<size_t>(count < 0 ? 0 : count));
  int code = Z_OK;
  const char* const text = gzerror(stream_->file, &code);
  if (count > 0 && code != Z_DATA_ERROR) return true;
  if (code == Z_BUF_ERROR) {
    ++line_;
    return Error("the compressed file ends here, before its end; is the copy complete?");
  }
  if (count < 0 || (code != Z_OK && code != Z_STREAM_END)) {
    ++line_;
    if (code == Z_ERRNO) return SystemError(errno, path_);
    return Error(absl::StrCat("the compressed file is damaged (", text, ")"));
  }
  struct stat now = {};
  if (stat(path_.c_str(), &now) != 0 || !(StampOf(now) == stamp_)) {
    return Error("the file has changed while it was read; wait until it is complete and start again");
  }
  return false;
}

absl::StatusOr<bool> LineReader::Next(absl::string_view* line) {
  size_t searched = used_;
  for (;;) {
    const size_t end = buffer_.find('\n', searched);
    if (end != std::string::npos) {
      *line = absl::string_view(buffer_).substr(used_, end - used_);
      used_ = end + 1;
      break;
    }
    const size_t pending = buffer_.size() - used_;
    if (pending > kMaxLine) {
      ++line_;
      return Error(absl::StrCat("a line of more than ", kMaxLine, " bytes"));
    }
    const auto more = Fill();
    if (!more.ok()) return more.status();
    searched = pending;
    if (*more) continue;
    if (pending == 0) return false;
    *line = absl::string_view(buffer_).substr(0, pending);  // The last line has no end.
    used_ = pending;
    break;
  }
  ++line_;
  if (!line->empty() && line->back() == '\r') line->remove_suffix(1);
  return true;
}

}  // namespace skein
