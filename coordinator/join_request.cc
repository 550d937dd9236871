// SPDX-License-Identifier: Apache-2.0
#include "coordinator/join_request.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "base/net/grpc_transport.h"
#include "base/telemetry/printable.h"

namespace skein {
namespace {

uint32_t RanksOf(const v1::JoinRequest& request) { return std::max(request.ranks(), 1u); }

}  // namespace

absl::Status CheckJoin(const v1::JoinRequest& request, const std::string& run_id) {
  if (request.protocol_major() != kProtocolMajor) {
    return absl::FailedPreconditionError(absl::StrCat(
        "protocol ", request.protocol_major(), ".", request.protocol_minor(), " does not match the coordinator's ",
        kProtocolMajor, ".", kProtocolMinor, "; run the same version of Skein everywhere"));
  }
  if (request.role() != v1::ROLE_LEARNER && request.role() != v1::ROLE_ACTOR) {
    return absl::InvalidArgumentError(
        absl::StrCat("role must be learner (1) or actor (2); got ", static_cast<int>(request.role())));
  }
  if (!request.run_id().empty() && request.run_id() != run_id) {
    return absl::FailedPreconditionError(
        absl::StrCat("it serves run ", run_id, ", this member belongs to run ", Excerpt(request.run_id())));
  }
  if (request.role() == v1::ROLE_LEARNER && request.data_address().empty()) {
    return absl::InvalidArgumentError("a learner must give the data_address of its Learner service");
  }
  if (request.role() == v1::ROLE_LEARNER && request.rank() >= RanksOf(request)) {
    return absl::InvalidArgumentError(absl::StrCat("rank must be 0 to ", RanksOf(request) - 1, ", as there are ",
                                                   RanksOf(request), RanksOf(request) == 1 ? " rank" : " ranks",
                                                   "; got ", request.rank()));
  }
  return absl::OkStatus();
}

Member MemberOf(const v1::JoinRequest& request) {
  Member member;
  member.role = request.role();
  member.rank = request.role() == v1::ROLE_LEARNER ? request.rank() : 0;
  member.ranks = RanksOf(request);
  member.runners = request.runners();
  member.host = request.host();
  member.pid = request.pid();
  member.data_address = request.data_address();
  member.metrics_address = request.metrics_address();
  return member;
}

}  // namespace skein
