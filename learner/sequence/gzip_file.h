// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"

struct z_stream_s;  // zlib's.

namespace skein {

// The bytes of a file. What gzip compressed is decompressed; its first two bytes tell.   Read ... -> 0
// zlib's gzread would leave out, without a word, what follows the compressed data, and with damaged data what comes
// before. Not thread-safe. Errors come after all bytes before them, and again from then on, without the file's name.
// DataLoss: the compressed data are cut off or damaged, or other data follow them. As SystemError: the file cannot be
// read.
class GzipFile {
 public:
  // Closes the descriptor at its end. REQUIRES: it is open for reading.
  explicit GzipFile(int descriptor);
  ~GzipFile();
  GzipFile(const GzipFile&) = delete;
  GzipFile& operator=(const GzipFile&) = delete;

  // Writes up to `size` bytes to `to` and returns how many; 0: the end. REQUIRES: size > 0.
  absl::StatusOr<size_t> Read(char* to, size_t size);
  uint64_t bytes_used() const;  // Of the file.

 private:
  enum class Kind { kUnknown, kPlain, kCompressed };

  absl::Status Fill();  // When the buffer is empty. Leaves it so at the end of the file.
  absl::Status Begin();
  absl::StatusOr<size_t> Copy(char* to, size_t size);
  absl::StatusOr<size_t> Inflate(char* to, size_t size);
  // Behind a member. false: there is no other one.
  absl::StatusOr<bool> BeginNextMember();

  const int descriptor_;
  Kind kind_ = Kind::kUnknown;
  std::vector<unsigned char> buffer_;
  const std::unique_ptr<z_stream_s> stream_;  // Its input are the bytes of the buffer that have not been used.
  bool inflates_ = false, behind_member_ = false;
  uint64_t bytes_read_ = 0;
  absl::Status failed_;
};

}  // namespace skein
