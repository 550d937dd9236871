// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "nlohmann/json.hpp"

namespace skein {

// The file of a sweep's journal: JSON objects, one a line, in the format of Optuna's JournalFileBackend. One sweep
// writes it; others may read it at any time, and add whole lines, as Optuna does. Not thread-safe.
class Journal {
 public:
  // For tests: gets how many records an append has, and gives how many of them are written before it fails, as in a
  // crash; nullopt: it does not fail.
  using Fault = std::function<std::optional<size_t>(size_t records)>;

  // Opens the file or creates it, and reads it. A last line that a crash cut off is removed. Unavailable: another
  // process has it open for writing. DataLoss: "path:line: ..." a line that is no object with an op_code.
  // PermissionDenied, ResourceExhausted: as files have them.
  static absl::StatusOr<std::unique_ptr<Journal>> Open(const std::string& path, Fault fault = {});
  ~Journal();
  Journal(const Journal&) = delete;
  Journal& operator=(const Journal&) = delete;

  // What was in the file when it was opened. Moves it out.
  std::vector<nlohmann::json> TakeRecords() { return std::move(records_); }

  // Adds the records, all or none, and waits until they are on the disk. A crash may leave the first of them: their
  // order must allow for it. Returns what is new in the file, in its order: the records, and what others have added.
  // ResourceExhausted: the disk is full; the file is as before. DataLoss as Open().
  absl::StatusOr<std::vector<nlohmann::json>> Append(const std::vector<nlohmann::json>& records);

  const std::string& path() const { return path_; }

 private:
  Journal(std::string path, int fd, Fault fault) : path_(std::move(path)), fd_(fd), fault_(std::move(fault)) {}
  absl::Status Load();
  // The complete lines after those that were read before.
  absl::StatusOr<std::vector<nlohmann::json>> ReadNew();
  absl::Status WriteLines(absl::string_view lines);

  const std::string path_;
  const int fd_;
  const Fault fault_;
  uint64_t read_ = 0;  // Bytes.
  size_t lines_ = 0;   // Of them.
  std::vector<nlohmann::json> records_;
};

}  // namespace skein
