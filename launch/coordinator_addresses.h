// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "absl/status/statusor.h"

namespace skein {

// Where a coordinator that this process has started listens.
struct CoordinatorAddresses {
  std::string grpc;
  std::string http_url;
};

// The addresses in "coordinator listening grpc=HOST:PORT http=http://HOST:PORT/". Internal: it is another line.
absl::StatusOr<CoordinatorAddresses> ParseCoordinatorLine(const std::string& line);

}  // namespace skein
