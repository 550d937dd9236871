// SPDX-License-Identifier: Apache-2.0
#include "bench/temporary_folder.h"

#include <cerrno>
#include <cstdlib>
#include <filesystem>

#include "base/process/system_error.h"

namespace skein {

absl::StatusOr<TemporaryFolder> TemporaryFolder::Make() {
  const char* const parent = std::getenv("TMPDIR");
  std::string path = std::string(parent == nullptr || *parent == '\0' ? "/tmp" : parent) + "/skein-bench-XXXXXX";
  if (mkdtemp(path.data()) == nullptr) return SystemError(errno, path);
  TemporaryFolder folder;
  folder.path_ = path;
  return folder;
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code ignored;
  if (!path_.empty()) std::filesystem::remove_all(path_, ignored);
}

}  // namespace skein
