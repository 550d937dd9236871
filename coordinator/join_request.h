// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "absl/status/status.h"
#include "coordinator/membership.h"
#include "skein/v1/coordinator_service.pb.h"

// Checks and converts a process's request to join.   JoinRequest -> CheckJoin -> MemberOf -> Membership
namespace skein {

// FailedPrecondition: another protocol or another run. InvalidArgument: bad role, data address or rank.
absl::Status CheckJoin(const v1::JoinRequest& request, const std::string& run_id);

// A member still without id, generation and lease. REQUIRES: CheckJoin(request, ...) is ok.
Member MemberOf(const v1::JoinRequest& request);

}  // namespace skein
