// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "absl/status/statusor.h"

namespace skein {

// A new folder under TMPDIR or /tmp. The destructor removes it and its content.
class TemporaryFolder {
 public:
  // PermissionDenied, ResourceExhausted, NotFound: it cannot be created.
  static absl::StatusOr<TemporaryFolder> Make();
  ~TemporaryFolder();
  TemporaryFolder(TemporaryFolder&& other) noexcept { path_.swap(other.path_); }
  TemporaryFolder(const TemporaryFolder&) = delete;

  const std::string& path() const { return path_; }

 private:
  TemporaryFolder() = default;
  std::string path_;  // Empty: moved from.
};

}  // namespace skein
