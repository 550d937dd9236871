// SPDX-License-Identifier: Apache-2.0
#include "base/process/exit_code.h"

#include <cstdio>
#include <cstdlib>
#include <string>

#include "absl/strings/str_replace.h"

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
    message = absl::StrReplaceAll(message, {{"\r", ""}, {"\n", " "}});
    std::fprintf(stderr, "%s: %s\n", program, message.c_str());
  }
  return ExitCodeOf(status);
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
