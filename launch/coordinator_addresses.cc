// SPDX-License-Identifier: Apache-2.0
#include "launch/coordinator_addresses.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

namespace skein {

absl::StatusOr<CoordinatorAddresses> ParseCoordinatorLine(const std::string& line) {
  CoordinatorAddresses addresses;
  for (absl::string_view word : absl::StrSplit(line, ' ')) {
    if (absl::ConsumePrefix(&word, "grpc=")) addresses.grpc = std::string(word);
    if (absl::ConsumePrefix(&word, "http=")) addresses.http_url = std::string(word);
  }
  if (addresses.grpc.empty() || addresses.http_url.empty()) {
    return absl::InternalError(absl::StrCat("coordinator said '", line, "', want its addresses"));
  }
  return addresses;
}

}  // namespace skein
