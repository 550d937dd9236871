// SPDX-License-Identifier: Apache-2.0
#include "base/process/file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "base/process/fault_hook.h"
#include "base/process/no_links.h"
#include "base/process/system_error.h"

namespace skein {
namespace {

// An open file that is closed at the end of its scope.
class FileDescriptor {
 public:
  explicit FileDescriptor(int fd) : fd_(fd) {}
  FileDescriptor(const FileDescriptor&) = delete;
  FileDescriptor& operator=(const FileDescriptor&) = delete;
  ~FileDescriptor() {
    if (fd_ >= 0) close(fd_);
  }
  int get() const { return fd_; }
  int Close() { return close(std::exchange(fd_, -1)); }

 private:
  int fd_;
};

// What a disk that is made to fail says; 0 = nothing.
int DiskFault() {
  switch (NextFault(FaultPoint::kDisk)) {
    case FaultKind::kEio:
      return EIO;
    case FaultKind::kEnospc:
      return ENOSPC;
    case FaultKind::kErofs:
      return EROFS;
    default:
      return 0;
  }
}

}  // namespace

absl::StatusOr<std::string> ReadFile(const std::string& path, uint64_t max_bytes) {
  // O_NONBLOCK: opening a pipe would wait until somebody writes.
  const FileDescriptor file(open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
  if (file.get() < 0) return SystemError(errno, absl::StrCat("cannot read ", path));
  struct stat info;
  if (fstat(file.get(), &info) != 0) return SystemError(errno, absl::StrCat("cannot read ", path));
  if (!S_ISREG(info.st_mode) && !S_ISDIR(info.st_mode)) {
    return absl::InvalidArgumentError(absl::StrCat("cannot read ", path, ": is not a regular file"));
  }
  const auto too_large = [&] {
    return absl::InvalidArgumentError(absl::StrCat("cannot read ", path, ": larger than ", max_bytes, " bytes"));
  };
  if (info.st_size > 0 && static_cast<uint64_t>(info.st_size) > max_bytes) return too_large();

  // The size is a hint only: files of /proc say 0. One byte more than expected shows the end of the file.
  std::string contents(static_cast<size_t>(info.st_size) + 1, '\0');
  size_t size = 0;
  while (true) {
    if (size == contents.size()) contents.resize(contents.size() * 2 + 4096);
    const ssize_t got = read(file.get(), contents.data() + size, contents.size() - size);
    if (got < 0) {
      if (errno == EINTR) continue;
      return SystemError(errno, absl::StrCat("cannot read ", path));
    }
    if (got == 0) break;
    size += got;
    if (size > max_bytes) return too_large();
  }
  contents.resize(size);
  return contents;
}

absl::Status WriteFileSynced(const std::string& path, absl::string_view contents) {
  FileDescriptor file(open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0666));
  if (file.get() < 0 && errno == ELOOP) return LinkError(path);
  if (file.get() < 0) return SystemError(errno, absl::StrCat("cannot create ", path));
  if (const int error = DiskFault(); error != 0) return SystemError(error, absl::StrCat("cannot write ", path));
  while (!contents.empty()) {
    const ssize_t written = write(file.get(), contents.data(), contents.size());
    if (written < 0) {
      if (errno == EINTR) continue;
      return SystemError(errno, absl::StrCat("cannot write ", path));
    }
    contents.remove_prefix(written);
  }
  if (fsync(file.get()) != 0) return SystemError(errno, absl::StrCat("cannot write ", path));
  if (file.Close() != 0) return SystemError(errno, absl::StrCat("cannot write ", path));
  return absl::OkStatus();
}

absl::Status WriteFileAtomically(const std::string& path, absl::string_view contents) {
  const std::string temporary = absl::StrCat(path, ".tmp", getpid());
  absl::Status status = WriteFileSynced(temporary, contents);
  if (status.ok() && rename(temporary.c_str(), path.c_str()) != 0)
    status = SystemError(errno, absl::StrCat("cannot replace ", path));
  if (status.ok()) return status;
  unlink(temporary.c_str());
  return absl::Status(status.code(), absl::StrReplaceAll(status.message(), {{temporary, path}}));
}

absl::Status SyncFolder(const std::string& path) {
  const FileDescriptor folder(open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (folder.get() < 0) return SystemError(errno, absl::StrCat("cannot open folder ", path));
  if (fsync(folder.get()) != 0) return SystemError(errno, absl::StrCat("cannot sync folder ", path));
  return absl::OkStatus();
}

}  // namespace skein
