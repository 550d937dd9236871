// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "absl/status/status.h"

namespace skein {

// Exit codes of all Skein programs, from sysexits(3).
enum ExitCode : int {
  kExitOk = 0,
  kExitUsage = 64,        // Flags or configuration: INVALID_ARGUMENT, OUT_OF_RANGE; no credentials: UNAUTHENTICATED.
  kExitData = 65,         // Input data: DATA_LOSS, NOT_FOUND, FAILED_PRECONDITION.
  kExitUnavailable = 69,  // A service or port: UNAVAILABLE, DEADLINE_EXCEEDED, ALREADY_EXISTS.
  kExitInternal = 70,     // Anything else.
  kExitIo = 74,           // RESOURCE_EXHAUSTED, PERMISSION_DENIED; standard output cannot be written.
  kExitTryAgain = 75,     // ABORTED, CANCELLED.
};

ExitCode ExitCodeOf(const absl::Status& status);

// Prints "PROGRAM: message" as one line on standard error (message_text.h) unless ok; returns the exit code.
int ReportAndExitCode(const char* program, const absl::Status& status);

// Flushes standard output, and returns `code`. If anything that was printed could not be written, says so on standard
// error, and returns kExitIo in place of kExitOk. The last thing that main() does.
int FinishOutput(const char* program, int code);

// Ends the process: flushes output, but does not run destructors of static objects. LibTorch's destructors take a fifth
// of its loading time (docs/benchmarks/two-cores/many-actors.txt), and all actors of a node would spend it
// at the same time.
[[noreturn]] void EndProcess(int code);

}  // namespace skein
