// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "coordinator/state_store.h"

namespace skein {

// A StateStore in a folder with two files: `log`, to which each Write() appends an entry with checksums, and `lock`,
// held while the store is open. An incomplete last entry (the process or the machine died) is dropped with a warning.
// When the log is several times larger than its live records, it is rewritten to a new file, which is renamed into
// place.
class StateLog final : public StateStore {
 public:
  static constexpr uint64_t kCompactBytes = uint64_t{1} << 20;  // Smaller logs are left as they are.

  // Creates the folder if needed. Unavailable: another process has it open. Others: the system's error.
  static absl::StatusOr<std::unique_ptr<StateLog>> Open(const std::string& folder,
                                                        uint64_t compact_bytes = kCompactBytes);
  ~StateLog() override;

  // DataLoss: a damaged entry is followed by others.
  absl::StatusOr<std::map<std::string, std::string>> Load() override;
  absl::Status Write(const std::vector<StateChange>& changes) override;
  // Renames the log to `log.NAME` and starts an empty one.
  absl::StatusOr<std::string> SetAside(const std::string& name) override;

  uint64_t log_bytes() const { return size_; }

 private:
  StateLog(std::string folder, uint64_t compact_bytes);
  absl::Status Append(const std::string& entry, bool durable);
  absl::Status Rewrite();
  void CloseLog();

  const std::string folder_;
  const std::string path_;
  const uint64_t compact_bytes_;
  int lock_ = -1;
  int log_ = -1;  // -1: the next Write() rewrites the whole log.
  uint64_t size_ = 0;
  uint64_t live_bytes_ = 0;  // Of records_.
  std::map<std::string, std::string> records_;
};

}  // namespace skein
