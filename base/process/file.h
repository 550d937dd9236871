// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace skein {

// Reads a whole file. NotFound: no such file. InvalidArgument: larger than `max_bytes`, or no regular file: pipes and
// devices are refused at once. PermissionDenied, DataLoss.
absl::StatusOr<std::string> ReadFile(const std::string& path, uint64_t max_bytes = uint64_t{1} << 32);

// Writes and fsyncs `path` (not its folder). ResourceExhausted: disk full. PermissionDenied: read-only or not allowed.
absl::Status WriteFileSynced(const std::string& path, absl::string_view contents);

// The same by a temporary file in the same folder, which is then renamed to `path`.
absl::Status WriteFileAtomically(const std::string& path, absl::string_view contents);

absl::Status SyncFolder(const std::string& path);

}  // namespace skein
