// SPDX-License-Identifier: Apache-2.0
#include "base/process/system_error.h"

#include <cerrno>
#include <system_error>

#include "absl/strings/str_cat.h"

namespace skein {

absl::Status SystemError(int error_number, const std::string& what) {
  const std::string message = absl::StrCat(what, ": ", std::generic_category().message(error_number));
  switch (error_number) {
    case ENOENT:
      return absl::NotFoundError(message);
    case EACCES:
    case EPERM:
    case EROFS:
    case ETXTBSY:
      return absl::PermissionDeniedError(message);
    case ENOSPC:
    case EDQUOT:
    case EFBIG:
    case EMFILE:
    case ENFILE:
    case ENOMEM:
      return absl::ResourceExhaustedError(message);
    case ENOTDIR:
    case EISDIR:
    case ENAMETOOLONG:
    case ELOOP:
    case EINVAL:
      return absl::InvalidArgumentError(message);
    default:
      return absl::DataLossError(message);
  }
}

}  // namespace skein
