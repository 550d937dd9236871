// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

// Writes files of records in TensorBoard's format.
namespace skein {

// CRC-32C (Castagnoli), as of RFC 3720 B.4.
uint32_t Crc32c(absl::string_view bytes);

// A file of records in TensorBoard's format (TFRecord); the caller defines the content of the records.
// A record: its length (uint64), the length's checksum, its bytes, their checksum; all little-endian. Checksums are
// masked CRC-32C. Not thread-safe.
class EventFile {
 public:
  // Creates the file, or appends to an existing one. Errors as WriteFileSynced.
  static absl::StatusOr<std::unique_ptr<EventFile>> Open(const std::string& path);
  EventFile(const EventFile&) = delete;
  EventFile& operator=(const EventFile&) = delete;
  ~EventFile();

  // Cuts the file before its first record that is damaged or incomplete, or that `keep` does not want. Records have at
  // most 64 MiB. Errors as ReadFile and WriteFileSynced.
  static absl::Status Trim(const std::string& path, const std::function<bool(const std::string& record)>& keep);

  // Readers of the file see the record at once; it is not fsynced. After an error (as WriteFileSynced) the file is cut
  // back to its previous end if possible, and the next record may succeed.
  absl::Status Append(absl::string_view record);
  // Waits until all records are on the disk. Errors as WriteFileSynced.
  absl::Status Sync();

 private:
  EventFile(std::string path, int fd) : path_(std::move(path)), fd_(fd) {}

  const std::string path_;
  const int fd_;
};

}  // namespace skein
