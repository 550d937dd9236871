// SPDX-License-Identifier: Apache-2.0
#include "learner/sequence/line_reader.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
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

LineReader::LineReader(std::string path, FileStamp stamp, int descriptor)
    : path_(std::move(path)), stamp_(stamp), file_(descriptor) {}

absl::StatusOr<std::unique_ptr<LineReader>> LineReader::Open(const std::string& path) {
  const int descriptor = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (descriptor < 0) return SystemError(errno, path);
  struct stat info = {};
  if (fstat(descriptor, &info) != 0 || !S_ISREG(info.st_mode)) {
    close(descriptor);
    return absl::InvalidArgumentError(absl::StrCat(path, ": want a file; this is no regular one"));
  }
  return std::unique_ptr<LineReader>(new LineReader(path, StampOf(info), descriptor));
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
  const auto count = file_.Read(buffer_.data() + before, kChunk);
  buffer_.resize(before + (count.ok() ? *count : 0));
  if (!count.ok()) {
    ++line_;
    const absl::Status located = Error(count.status().message());
    return absl::Status(count.status().code(), located.message());
  }
  if (*count > 0) return true;
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
  if (line_ == 1) absl::ConsumePrefix(line, "\xEF\xBB\xBF");  // UTF-8's byte order mark.
  absl::ConsumeSuffix(line, "\r");
  if (absl::StrContains(*line, '\r')) {
    return Error("a carriage return within the line; lines end with a newline, or with both");
  }
  return true;
}

}  // namespace skein
