// SPDX-License-Identifier: Apache-2.0
#include "learner/ranks/rank_roll.h"

#include "absl/strings/str_cat.h"
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

absl::StatusOr<RankRoll::Answer> RankRoll::Call(absl::Duration deadline) {
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
    Answer answer;
    for (const v1::MemberStatus& member : response.members()) {
      if (member.role() == "learner") answer.processes[member.rank()] = absl::StrCat(member.host(), " ", member.pid());
    }
    answer.expirations = response.expirations();
    answer.uptime = absl::Seconds(response.uptime_seconds());
    return answer;
  }
  return status;
}

std::optional<uint32_t> FindLeaver(const RankRoll::Answer& then, const RankRoll::Answer& now,
                                   const std::set<uint32_t>& there) {
  if (now.uptime < then.uptime) return std::nullopt;
  for (const uint32_t rank : there) {
    const auto before = then.processes.find(rank), after = now.processes.find(rank);
    if (before == then.processes.end()) continue;
    const bool gone = after == now.processes.end();
    if (gone ? now.expirations == then.expirations : after->second != before->second) return rank;
  }
  return std::nullopt;
}

}  // namespace skein
