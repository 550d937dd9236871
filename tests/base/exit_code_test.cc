// SPDX-License-Identifier: Apache-2.0
#include "base/process/exit_code.h"

#include <cstdio>
#include <cstdlib>
#include <iostream>

#include "gtest/gtest.h"

namespace skein {
namespace {

TEST(ExitCode, FollowsSysexits) {
  EXPECT_EQ(ExitCodeOf(absl::OkStatus()), 0);
  EXPECT_EQ(ExitCodeOf(absl::InvalidArgumentError("")), 64);
  EXPECT_EQ(ExitCodeOf(absl::OutOfRangeError("")), 64);
  EXPECT_EQ(ExitCodeOf(absl::DataLossError("")), 65);
  EXPECT_EQ(ExitCodeOf(absl::NotFoundError("")), 65);
  EXPECT_EQ(ExitCodeOf(absl::FailedPreconditionError("")), 65);
  EXPECT_EQ(ExitCodeOf(absl::UnavailableError("")), 69);
  EXPECT_EQ(ExitCodeOf(absl::DeadlineExceededError("")), 69);
  EXPECT_EQ(ExitCodeOf(absl::AlreadyExistsError("")), 69);
  EXPECT_EQ(ExitCodeOf(absl::InternalError("")), 70);
  EXPECT_EQ(ExitCodeOf(absl::UnknownError("")), 70);
  EXPECT_EQ(ExitCodeOf(absl::ResourceExhaustedError("")), 74);
  EXPECT_EQ(ExitCodeOf(absl::PermissionDeniedError("")), 74);
  EXPECT_EQ(ExitCodeOf(absl::AbortedError("")), 75);
  EXPECT_EQ(ExitCodeOf(absl::CancelledError("")), 75);
}

TEST(ExitCode, PrintsTheMessageAsOneLine) {
  testing::internal::CaptureStderr();
  EXPECT_EQ(ReportAndExitCode("skein", absl::UnavailableError("port 1\r\nis in use")), 69);
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "skein: port 1 is in use\n");
}

TEST(ExitCode, NamesTheCodeOfAnErrorWithoutMessage) {
  testing::internal::CaptureStderr();
  EXPECT_EQ(ReportAndExitCode("skein", absl::AbortedError("")), 75);
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "skein: ABORTED\n");
}

TEST(ExitCode, IsSilentOnSuccess) {
  testing::internal::CaptureStderr();
  EXPECT_EQ(ReportAndExitCode("skein", absl::OkStatus()), 0);
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
}

TEST(FinishOutput, IsAnErrorWhereOutputWasLost) {
  const auto print_to = [](const char* path, int code) {
    if (std::freopen(path, "w", stdout) == nullptr) std::_Exit(1);
    std::cout << "results" << std::endl;
    std::exit(FinishOutput("skein envs", code));
  };
  EXPECT_EXIT(print_to("/dev/null", 0), testing::ExitedWithCode(0), "^$");
  EXPECT_EXIT(print_to("/dev/full", 0), testing::ExitedWithCode(74), "skein envs: standard output cannot be written: ");
  EXPECT_EXIT(print_to("/dev/full", 65), testing::ExitedWithCode(65), "standard output");  // The first error counts.
}

TEST(ExitCode, EndProcessWritesWhatWasPrinted) {
  EXPECT_EXIT(
      {
        char buffer[4096];
        std::setvbuf(stderr, buffer, _IOFBF, sizeof buffer);
        std::fputs("not written yet", stderr);
        EndProcess(kExitTryAgain);
      },
      testing::ExitedWithCode(75), "not written yet");
}

}  // namespace
}  // namespace skein
