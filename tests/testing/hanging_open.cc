// SPDX-License-Identifier: Apache-2.0
// A library for LD_PRELOAD with which opening a file hangs for ever, as on a file system whose server does not answer:
// a file to write whose path contains what SKEIN_HANGING_OPEN says. The first one that hangs makes the file that
// SKEIN_HANGING_MARKER names.
#include <dlfcn.h>
#include <fcntl.h>
#include <unistd.h>

#include <cstdarg>
#include <cstdlib>
#include <cstring>

namespace {

using Open = int (*)(const char*, int, mode_t);

int OpenOrHang(const char* name, const char* path, int flags, mode_t mode) {
  const char* const hanging = std::getenv("SKEIN_HANGING_OPEN");
  const char* const marker = std::getenv("SKEIN_HANGING_MARKER");
  const auto next = reinterpret_cast<Open>(dlsym(RTLD_NEXT, name));
  if (hanging != nullptr && marker != nullptr && (flags & O_CREAT) != 0 && std::strstr(path, hanging) != nullptr) {
    close(next(marker, O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
    while (true) pause();
  }
  return next(path, flags, mode);
}

}  // namespace

extern "C" {

int open(const char* path, int flags, ...) {
  va_list list;
  va_start(list, flags);
  const mode_t mode = (flags & O_CREAT) != 0 ? va_arg(list, mode_t) : 0;
  va_end(list);
  return OpenOrHang("open", path, flags, mode);
}

int open64(const char* path, int flags, ...) {
  va_list list;
  va_start(list, flags);
  const mode_t mode = (flags & O_CREAT) != 0 ? va_arg(list, mode_t) : 0;
  va_end(list);
  return OpenOrHang("open64", path, flags, mode);
}

}  // extern "C"
