// SPDX-License-Identifier: Apache-2.0
#include "base/process/exit_code.h"

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <string>

#include "base/process/message_text.h"

namespace skein {

ExitCode ExitCodeOf(const absl::Status& status) {
  switch (status.code()) {
    case absl::StatusCode::kOk:
      return kExitOk;
    case absl::StatusCode::kInvalidArgument:
    case absl::StatusCode::kOutOfRange:
    case absl::StatusCode::kUnauthenticated:
      return kExitUsage;
    case absl::StatusCode::kDataLoss:
    case absl::StatusCode::kNotFound:
    case absl::StatusCode::kFailedPrecondition:
      return kExitData;
    case absl::StatusCode::kUnavailable:
    case absl::StatusCode::kDeadlineExceeded:
    case absl::StatusCode::kAlreadyExists:
      return kExitUnavailable;
    case absl::StatusCode::kResourceExhausted:
    case absl::StatusCode::kPermissionDenied:
      return kExitIo;
    case absl::StatusCode::kAborted:
    case absl::StatusCode::kCancelled:
      return kExitTryAgain;
    default:
      return kExitInternal;
  }
}

int ReportAndExitCode(const char* program, const absl::Status& status) {
  if (!status.ok()) {
    std::string message(status.message());
    if (message.empty()) message = absl::StatusCodeToString(status.code());
    std::fprintf(stderr, "%s: %s\n", program, OneLine(message).c_str());
  }
  return ExitCodeOf(status);
}

int FinishOutput(const char* program, int code) {
  std::cout.flush();
  errno = 0;
  const bool flushed = std::fflush(stdout) == 0;
  const int error = errno;
  if (flushed && std::ferror(stdout) == 0 && std::cout.good()) return code;
  // Where what failed is no longer in the buffer, the reason is not known.
  std::fprintf(stderr, "%s: standard output cannot be written: %s\n", program,
               flushed ? "its disk is full, or it is closed" : std::strerror(error));
  return code == kExitOk ? kExitIo : code;
}

void EndProcess(int code) {
#ifdef SKEIN_SANITIZED  // Sanitizers look for what is left when the last destructors have run.
  std::exit(code);
#else
  std::fflush(nullptr);
  std::_Exit(code);
#endif
}

}  // namespace skein
