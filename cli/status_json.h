// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "skein/v1/status.pb.h"

namespace skein {

// One line of JSON with all fields, named as in status.proto. Internal: protobuf cannot print them.
absl::StatusOr<std::string> StatusAsJson(const v1::StatusResponse& status);

}  // namespace skein
