// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "learner/sequence/gzip_file.h"

// Reads text files line by line, and tells whether a file has changed meanwhile.
namespace skein {

// What tells a file from another one, or from itself before it was changed.
struct FileStamp {
  uint64_t bytes = 0;
  int64_t modified_ns = 0;
  uint64_t inode = 0;

  bool operator==(const FileStamp& other) const {
    return bytes == other.bytes && modified_ns == other.modified_ns && inode == other.inode;
  }
};

// The lines of a text file, plain or compressed by gzip (told by its content).   Open -> Next ... -> false
// In memory are a buffer and one line. Not thread-safe. Errors name file and line: NotFound, PermissionDenied;
// InvalidArgument: no regular file. DataLoss: the compressed data are cut off or damaged or have other data behind
// them, the file has changed since Open, or a line has more than kMaxLine bytes.
class LineReader {
 public:
  static constexpr size_t kMaxLine = size_t{1} << 26;

  static absl::StatusOr<std::unique_ptr<LineReader>> Open(const std::string& path);
  LineReader(const LineReader&) = delete;
  LineReader& operator=(const LineReader&) = delete;

  // Sets `line` to the next line without its end, \n or \r\n, and without a byte order mark before the first one; it
  // is valid until the next call. false: there is none. DataLoss, too: another \r.
  absl::StatusOr<bool> Next(absl::string_view* line);
  uint64_t line() const { return line_; }  // Of the last line, from 1.
  const FileStamp& stamp() const { return stamp_; }
  uint64_t compressed_bytes_read() const { return file_.bytes_used(); }  // Of stamp().bytes, for progress.

  // DataLoss "FILE:LINE: problem", of the last line.
  absl::Status Error(absl::string_view problem) const;

 private:
  LineReader(std::string path, FileStamp stamp, int descriptor);
  // Fills the buffer; false: the file is at its end.
  absl::StatusOr<bool> Fill();

  const std::string path_;
  const FileStamp stamp_;
  GzipFile file_;
  std::string buffer_;
  size_t used_ = 0;  // Bytes of the buffer that belong to earlier lines.
  uint64_t line_ = 0;
};

}  // namespace skein
