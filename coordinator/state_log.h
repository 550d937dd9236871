// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "coordinator/state_store.h"

namespace skein {

// A StateStore in a folder: `log`, to which each Write() is appended with checksums, and `lock`, held while it is open.
// An entry that was not written to its end (the process or the machine died) is dropped with what follows it, which is
// nothing; a warning says so. Once the log is several times as large as what is in it, it is written anew beside, and
// renamed into place.
class StateLog final : public StateStore {
 public:
  static constexpr uint64_t kCompactBytes = uint64_t{1} << 20;  // Smaller logs are left as they are.

  // Makes the folder if there is none. Unavailable: another process has it open. Others: as the system says.
  static absl::StatusOr<std::unique_ptr<StateLog>> Open(const std::string& folder,
                                                        uint64_t compact_bytes = kCompactBytes);
  ~StateLog() override;

  // DataLoss: a damaged entry has others after it.
  absl::StatusOr<std::map<std::string, std::string>> Load() override;
  absl::Status Write(const std::vector<StateChange>& changes) override;
  // As `log.NAME`; begins an empty log.
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
  int log_ = -1;  // -1: the next Write() writes everything anew.
  uint64_t size_ = 0;
  uint64_t live_bytes_ = 0;  // Of records_.
  std::map<std::string, std::string> records_;
};

}  // namespace skein
