// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "absl/status/statusor.h"

namespace skein {

// Addresses on which a coordinator started by this process listens.
struct CoordinatorAddresses {
  std::string grpc;
  std::string http_url;
};

// Parses the line "coordinator listening grpc=HOST:PORT http=http://HOST:PORT/". Internal: another line.
absl::StatusOr<CoordinatorAddresses> ParseCoordinatorLine(const std::string& line);

}  // namespace skein
