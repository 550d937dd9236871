// SPDX-License-Identifier: Apache-2.0
#include "learner/ranks/rank_roll.h"

#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "absl/time/clock.h"
#include "base/net/call_deadline.h"
#include "base/net/grpc_transport.h"
#include "grpcpp/client_context.h"

namespace skein {

RankRoll::RankRoll(const std::string& coordinator) {
  for (const absl::string_view address : absl::StrSplit(coordinator, ',')) {
    stubs_.push_back(v1::Coordinator::NewStub(OpenChannel(std::string(address))));
  }
}

absl::StatusOr<std::set<uint32_t>> RankRoll::Call(absl::Duration deadline) {
  const absl::Duration each = deadline / static_cast<int64_t>(stubs_.size());
  absl::Status status;
  for (size_t i = 0; i < stubs_.size(); ++i) {
    const size_t at = (answering_ + i) % stubs_.size();
    grpc::ClientContext context;
    SetTimeout(&context, each);
    v1::StatusResponse response;
    status = FromGrpc(stubs_[at]->GetStatus(&context, {}, &response));
    if (!status.ok()) continue;
    answering_ = at;
    std::set<uint32_t> ranks;
    for (const v1::MemberStatus& member : response.members()) {
      if (member.role() == "learner") ranks.insert(member.rank());
    }
    return ranks;
  }
  return status;
}

}  // namespace skein
