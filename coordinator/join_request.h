// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "absl/status/status.h"
#include "coordinator/membership.h"
#include "skein/v1/coordinator_service.pb.h"

// What a process says of itself when it joins.   JoinRequest -> CheckJoin -> MemberOf -> Membership
namespace skein {

// FailedPrecondition: of another protocol or another run. InvalidArgument: role, data address or rank.
absl::Status CheckJoin(const v1::JoinRequest& request, const std::string& run_id);

// A member without id, generation and lease. REQUIRES: CheckJoin(request, ...).
Member MemberOf(const v1::JoinRequest& request);

}  // namespace skein
