// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "absl/status/statusor.h"

namespace skein {

// A folder of its own under TMPDIR or /tmp, removed with all that is in it when this object goes.
class TemporaryFolder {
 public:
  // PermissionDenied, ResourceExhausted, NotFound: there is no room for it.
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
