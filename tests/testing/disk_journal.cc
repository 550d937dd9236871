// SPDX-License-Identifier: Apache-2.0
// A library for LD_PRELOAD that writes down what a process does to the files below the folder SKEIN_JOURNAL_OF (without
// links in its path), after it has been done, to the file SKEIN_JOURNAL: one line
// "OPERATION\tPATH\tOTHER\tNUMBER\tSIZE", then SIZE bytes and a line end. tests/faults/power_loss_test.cc reads it.
//   file PATH; folder PATH; link PATH OTHER (its target); move PATH OTHER; swap PATH OTHER; remove PATH
//   write PATH at NUMBER; cut PATH to NUMBER bytes; sync PATH
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <cstdarg>
#include <cstdlib>
#include <string>

namespace {

bool IsWatched(const std::string& path) {
  const char* const folder = std::getenv("SKEIN_JOURNAL_OF");
  return folder != nullptr && path.rfind(folder, 0) == 0;
}

std::string PathOf(int fd) {
  char path[PATH_MAX] = "";
  const ssize_t size = readlink(("/proc/self/fd/" + std::to_string(fd)).c_str(), path, sizeof(path));
  return std::string(path, size < 0 ? 0 : static_cast<size_t>(size));
}

// As /proc has the paths of open files: without links and double slashes on the way to the name.
std::string PathAt(int folder, const char* name) {
  const std::string whole = name[0] == '/' || folder == AT_FDCWD ? name : PathOf(folder) + "/" + name;
  const size_t last = whole.find_last_not_of('/');
  const size_t slash = whole.find_last_of('/', last);
  char parent[PATH_MAX] = "";
  const std::string before = slash == std::string::npos ? "." : whole.substr(0, slash + 1);
  if (last == std::string::npos || realpath(before.c_str(), parent) == nullptr) return whole;
  return std::string(parent) + "/" + whole.substr(slash == std::string::npos ? 0 : slash + 1, last - slash);
}

std::string PathAt(const char* name) { return PathAt(AT_FDCWD, name); }

void Note(const char* operation, const std::string& path, const std::string& other = "", off_t number = 0,
          const void* bytes = nullptr, size_t size = 0) {
  if (!IsWatched(path)) return;
  const int error = errno;
  static const int journal = static_cast<int>(
      syscall(SYS_openat, AT_FDCWD, std::getenv("SKEIN_JOURNAL"), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600));
  std::string head = std::string(operation) + "\t" + path + "\t" + other + "\t" + std::to_string(number) + "\t" +
                     std::to_string(size) + "\n";
  char end = '\n';
  const iovec parts[] = {{head.data(), head.size()}, {const_cast<void*>(bytes), size}, {&end, 1}};
  if (syscall(SYS_writev, journal, parts, 3) < 0) std::abort();
  errno = error;
}

int Open(int folder, const char* name, int flags, mode_t mode) {
  const std::string path = PathAt(folder, name);
  struct stat info;
  const bool missing = lstat(path.c_str(), &info) != 0;
  const int fd = static_cast<int>(syscall(SYS_openat, folder, name, flags, mode));
  if (fd >= 0 && (flags & O_CREAT) != 0 && missing) Note("file", path);
  if (fd >= 0 && (flags & O_TRUNC) != 0 && !missing) Note("cut", path);
  return fd;
}

mode_t ModeIn(int flags, va_list list) { return (flags & O_CREAT) != 0 ? va_arg(list, mode_t) : 0; }

ssize_t Written(int fd, const void* bytes, ssize_t size, off_t at) {
  if (size > 0) Note("write", PathOf(fd), "", at < 0 ? lseek(fd, 0, SEEK_CUR) - size : at, bytes, size);
  return size;
}

int Noted(int result, const char* operation, const std::string& path, const std::string& other = "", off_t number = 0) {
  if (result == 0) Note(operation, path, other, number);
  return result;
}

}  // namespace

extern "C" {

int open(const char* path, int flags, ...) {
  va_list list;
  va_start(list, flags);
  const int fd = Open(AT_FDCWD, path, flags, ModeIn(flags, list));
  va_end(list);
  return fd;
}

int open64(const char* path, int flags, ...) {
  va_list list;
  va_start(list, flags);
  const int fd = Open(AT_FDCWD, path, flags, ModeIn(flags, list));
  va_end(list);
  return fd;
}

int openat(int folder, const char* path, int flags, ...) {
  va_list list;
  va_start(list, flags);
  const int fd = Open(folder, path, flags, ModeIn(flags, list));
  va_end(list);
  return fd;
}

int openat64(int folder, const char* path, int flags, ...) {
  va_list list;
  va_start(list, flags);
  const int fd = Open(folder, path, flags, ModeIn(flags, list));
  va_end(list);
  return fd;
}

ssize_t write(int fd, const void* bytes, size_t size) {
  return Written(fd, bytes, syscall(SYS_write, fd, bytes, size), -1);
}

ssize_t pwrite(int fd, const void* bytes, size_t size, off_t at) {
  return Written(fd, bytes, syscall(SYS_pwrite64, fd, bytes, size, at), at);
}

ssize_t pwrite64(int fd, const void* bytes, size_t size, off_t at) { return pwrite(fd, bytes, size, at); }

int ftruncate(int fd, off_t size) noexcept {
  return Noted(static_cast<int>(syscall(SYS_ftruncate, fd, size)), "cut", PathOf(fd), "", size);
}

int truncate(const char* path, off_t size) noexcept {
  return Noted(static_cast<int>(syscall(SYS_truncate, path, size)), "cut", PathAt(path), "", size);
}

int fsync(int fd) { return Noted(static_cast<int>(syscall(SYS_fsync, fd)), "sync", PathOf(fd)); }

int fdatasync(int fd) { return Noted(static_cast<int>(syscall(SYS_fdatasync, fd)), "sync", PathOf(fd)); }

int mkdir(const char* path, mode_t mode) noexcept {
  return Noted(static_cast<int>(syscall(SYS_mkdir, path, mode)), "folder", PathAt(path));
}

int symlink(const char* target, const char* path) noexcept {
  return Noted(static_cast<int>(syscall(SYS_symlink, target, path)), "link", PathAt(path), target);
}

int rename(const char* from, const char* to) noexcept {
  return Noted(static_cast<int>(syscall(SYS_rename, from, to)), "move", PathAt(from), PathAt(to));
}

int renameat2(int from_folder, const char* from, int to_folder, const char* to, unsigned int flags) noexcept {
  return Noted(static_cast<int>(syscall(SYS_renameat2, from_folder, from, to_folder, to, flags)),
               (flags & RENAME_EXCHANGE) != 0 ? "swap" : "move", PathAt(from_folder, from), PathAt(to_folder, to));
}

int unlink(const char* path) noexcept {
  return Noted(static_cast<int>(syscall(SYS_unlink, path)), "remove", PathAt(path));
}

int rmdir(const char* path) noexcept {
  return Noted(static_cast<int>(syscall(SYS_rmdir, path)), "remove", PathAt(path));
}

int unlinkat(int folder, const char* path, int flags) noexcept {
  const std::string whole = PathAt(folder, path);
  return Noted(static_cast<int>(syscall(SYS_unlinkat, folder, path, flags)), "remove", whole);
}

}  // extern "C"
