// SPDX-License-Identifier: Apache-2.0
#include "launch/status_client.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/net/call_deadline.h"
#include "base/net/grpc_transport.h"
#include "base/net/tls_probe.h"
#include "base/process/clock.h"
#include "grpcpp/client_context.h"

namespace skein {
namespace {

// Asking once more why there was no answer.
constexpr absl::Duration kTlsProbe = absl::Milliseconds(500);

bool IsAway(const absl::Status& status) { return absl::IsUnavailable(status) || absl::IsDeadlineExceeded(status); }

}  // namespace

StatusClient::StatusClient(const std::string& address) : address_(address) {
  for (const auto one : absl::StrSplit(address, ',')) {
    stubs_.push_back(v1::Coordinator::NewStub(OpenChannel(std::string(one))));
  }
}

template <typename Call>
absl::Status StatusClient::Ask(absl::Duration deadline, Call call) const {
  const absl::Duration end = MonotonicNow() + deadline;
  absl::Status status;
  for (size_t i = 0; i < stubs_.size(); ++i) {
    grpc::ClientContext context;
    // A silent address must leave time for the others.
    SetTimeout(&context, (end - MonotonicNow()) / static_cast<int64_t>(stubs_.size() - i));
    status = FromGrpc(call(stubs_[i].get(), &context));
    if (!IsAway(status)) break;
  }
  return Explain(status);
}

absl::StatusOr<v1::StatusResponse> StatusClient::Get(absl::Duration deadline) const {
  v1::StatusResponse response;
  const absl::Status status =
      Ask(deadline, [&](auto* stub, auto* context) { return stub->GetStatus(context, {}, &response); });
  if (!status.ok()) return status;
  return response;
}

absl::Status StatusClient::Drain(const std::string& member, absl::Duration deadline) const {
  v1::DrainRequest request;
  request.set_member_id(member);
  v1::DrainResponse response;
  return Ask(deadline, [&](auto* stub, auto* context) { return stub->Drain(context, request, &response); });
}

absl::Status StatusClient::Remove(const std::string& member, uint64_t generation, absl::Duration deadline) const {
  v1::LeaveRequest request;
  request.set_member_id(member);
  request.set_generation(generation);
  v1::LeaveResponse response;
  return Ask(deadline, [&](auto* stub, auto* context) { return stub->Leave(context, request, &response); });
}

absl::Status StatusClient::Explain(const absl::Status& status) const {
  if (!IsAway(status)) return status;
  // A coordinator that hangs needs no explanation, and is asked again and again.
  const std::vector<std::string> refused =
      absl::StrSplit(absl::IsUnavailable(status) ? address_ : "", ',', absl::SkipEmpty());
  for (const std::string& one : refused) {
    const std::string problem = FindTlsProblem(one, ProcessCredentials(), kTlsProbe);
    if (!problem.empty())
      return absl::UnavailableError(absl::StrCat("cannot talk to the coordinator at ", one, ": ", problem));
  }
  return absl::UnavailableError(
      absl::StrCat("no coordinator answers at ", address_,
                   "; `skein train` and `skein head` print the address for --address when they start"));
}

}  // namespace skein
