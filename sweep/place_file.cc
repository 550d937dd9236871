// SPDX-License-Identifier: Apache-2.0
#include "sweep/place_file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "base/process/no_links.h"
#include "base/process/system_error.h"

namespace skein {
namespace {

namespace fs = std::filesystem;

constexpr int kAttempts = 200;  // To take a place, 1 ms apart.

}  // namespace

absl::StatusOr<int> TakePlaceFile(const std::string& path) {
  const fs::path folder = fs::path(path).parent_path();
  std::error_code error;
  fs::create_directories(folder, error);
  if (error) return absl::PermissionDeniedError(absl::StrCat("cannot make ", folder.string(), ": ", error.message()));
  // Whoever looks at the file between open() and flock() has the lock for a moment, and removes the file.
  for (int i = 0; i < kAttempts; ++i) {
    if (i > 0) absl::SleepFor(absl::Milliseconds(1));
    const int fd = open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0644);
    if (fd < 0) return SystemError(errno, absl::StrCat("cannot write ", path));
    if (flock(fd, LOCK_EX | LOCK_NB) == 0 && IsFileAt(fd, path)) return fd;
    close(fd);
  }
  return absl::UnavailableError(absl::StrCat(path, " is in use: another process lends this place"));
}

bool IsLent(const std::string& path) {
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
  if (fd < 0) return false;
  const bool lent = flock(fd, LOCK_SH | LOCK_NB) != 0;
  // While this has the lock: TakePlaceFile() sees that.
  if (!lent && IsFileAt(fd, path)) unlink(path.c_str());
  close(fd);
  return lent;
}

std::vector<std::string> LentIn(const std::string& folder) {
  std::vector<std::string> places;
  std::error_code error;
  for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
    if (IsLent(it->path().string())) places.push_back(it->path().filename().string());
  }
  std::sort(places.begin(), places.end());
  return places;
}

}  // namespace skein
