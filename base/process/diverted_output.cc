// SPDX-License-Identifier: Apache-2.0
#include "base/process/diverted_output.h"

#include <fcntl.h>
#include <unistd.h>

#include <cstdio>
#include <iostream>

namespace skein {

DivertedOutput::DivertedOutput() {
  std::cout.flush();
  std::fflush(stdout);
  output_ = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3);
  dup2(STDERR_FILENO, STDOUT_FILENO);
}

DivertedOutput::~DivertedOutput() {
  std::cout.flush();
  std::fflush(stdout);
  if (output_ < 0) {
    close(STDOUT_FILENO);
    return;
  }
  dup2(output_, STDOUT_FILENO);
  close(output_);
}

}  // namespace skein
