// SPDX-License-Identifier: Apache-2.0
#include "base/process/terminal.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>

namespace skein {

int TerminalWidth(std::FILE* out) {
  const int fd = fileno(out);
  const char* term = std::getenv("TERM");
  if (fd < 0 || isatty(fd) == 0 || term == nullptr || std::strcmp(term, "dumb") == 0) return 0;
  winsize size{};
  if (ioctl(fd, TIOCGWINSZ, &size) != 0 || size.ws_col == 0) return 80;
  return size.ws_col;
}

}  // namespace skein
