// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "nlohmann/json.hpp"

namespace skein {

// The file of a sweep's journal: JSON objects, one a line, in the format of Optuna's JournalFileBackend. One process
// writes it; others may read it at any time. Not thread-safe.
class Journal {
 public:
  // Opens the file or creates it, and reads it. A last line that a crash cut off is removed. Unavailable: another
  // process has it open for writing. DataLoss: "path:line: ..." a line that is no object with an op_code.
  // PermissionDenied, ResourceExhausted: as files have them.
  static absl::StatusOr<std::unique_ptr<Journal>> Open(const std::string& path);
  ~Journal();
  Journal(const Journal&) = delete;
  Journal& operator=(const Journal&) = delete;

  // What was in the file when it was opened. Moves it out.
  std::vector<nlohmann::json> TakeRecords() { return std::move(records_); }

  // Adds the records, all or none, and waits until they are on the disk. ResourceExhausted: the disk is full; the file
  // is as before.
  absl::Status Append(const std::vector<nlohmann::json>& records);

  const std::string& path() const { return path_; }

 private:
  Journal(std::string path, int fd) : path_(std::move(path)), fd_(fd) {}
  absl::Status Load();

  const std::string path_;
  const int fd_;
  std::vector<nlohmann::json> records_;
};

}  // namespace skein
