// SPDX-License-Identifier: Apache-2.0
#include "base/process/no_links.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "base/process/file.h"
#include "base/process/system_error.h"

namespace skein {
namespace {

absl::Status MakeOneFolder(const std::string& path, const std::string& parent) {
  if (mkdir(path.c_str(), 0777) != 0) {
    return errno == EEXIST ? absl::OkStatus() : SystemError(errno, absl::StrCat("cannot create folder ", path));
  }
  const absl::Status synced = SyncFolder(parent);
  // Who may write a folder need not be allowed to read it, which syncing takes.
  return absl::IsPermissionDenied(synced) ? absl::OkStatus() : synced;
}

}  // namespace

absl::Status LinkError(const std::string& path) {
  return absl::PermissionDeniedError(absl::StrCat(path, " is a symbolic link, and could lead anywhere; remove it"));
}

absl::StatusOr<int> OpenForAppend(const std::string& path) {
  const int fd = open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0666);
  const int error = errno;
  if (fd < 0 && error == ELOOP) return LinkError(path);
  struct stat info;
  if (fd >= 0 && fstat(fd, &info) == 0 && S_ISREG(info.st_mode)) return fd;
  if (fd < 0 && error != ENXIO) return SystemError(error, absl::StrCat("cannot write ", path));
  if (fd >= 0) close(fd);
  return absl::PermissionDeniedError(absl::StrCat(path, " is no regular file; remove it"));
}

absl::Status MakeFolder(const std::string& path) {
  struct stat info;
  if (lstat(path.c_str(), &info) == 0) {
    if (S_ISLNK(info.st_mode)) return LinkError(path);
    if (S_ISDIR(info.st_mode)) return absl::OkStatus();
    return absl::PermissionDeniedError(absl::StrCat("cannot create folder ", path, ": a file is in its place"));
  }
  const std::filesystem::path parent = std::filesystem::path(path).parent_path();
  std::error_code ignored;
  if (!parent.empty() && !std::filesystem::is_directory(parent, ignored)) {
    const absl::Status status = MakeFolder(parent);
    if (!status.ok()) {
      return absl::Status(status.code(), absl::StrCat("cannot create folder ", path, ": ", status.message()));
    }
  }
  return MakeOneFolder(path, parent.empty() ? "." : parent.string());
}

bool IsFileAt(int fd, const std::string& path) {
  struct stat opened, named;
  return fstat(fd, &opened) == 0 && lstat(path.c_str(), &named) == 0 && opened.st_dev == named.st_dev &&
         opened.st_ino == named.st_ino;
}

}  // namespace skein
