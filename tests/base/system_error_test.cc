// SPDX-License-Identifier: Apache-2.0
#include "base/process/system_error.h"

#include <cerrno>

#include "gtest/gtest.h"

namespace skein {
namespace {

TEST(SystemError, SaysWhatToDoByItsCode) {
  EXPECT_EQ(SystemError(ENOENT, "cannot read x"), absl::NotFoundError("cannot read x: No such file or directory"));
  EXPECT_TRUE(absl::IsPermissionDenied(SystemError(EROFS, "")));
  EXPECT_TRUE(absl::IsResourceExhausted(SystemError(ENOSPC, "")));
  EXPECT_TRUE(absl::IsInvalidArgument(SystemError(ENOTDIR, "")));
  EXPECT_TRUE(absl::IsDataLoss(SystemError(EIO, "")));
}

}  // namespace
}  // namespace skein
