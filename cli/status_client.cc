// SPDX-License-Identifier: Apache-2.0
#include "cli/status_client.h"

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "base/grpc_transport.h"
#include "grpcpp/client_context.h"

namespace skein {

StatusClient::StatusClient(const std::string& address)
    : address_(address), stub_(v1::Coordinator::NewStub(OpenChannel(address))) {}

absl::StatusOr<v1::StatusResponse> StatusClient::Get(absl::Duration deadline) const {
  grpc::ClientContext context;
  context.set_deadline(absl::ToChronoTime(absl::Now() + deadline));
  v1::StatusResponse response;
  const absl::Status status = FromGrpc(stub_->GetStatus(&context, {}, &response));
  if (!status.ok()) return Explain(status);
  return response;
}

absl::Status StatusClient::Drain(const std::string& member, absl::Duration deadline) const {
  grpc::ClientContext context;
  context.set_deadline(absl::ToChronoTime(absl::Now() + deadline));
  v1::DrainRequest request;
  request.set_member_id(member);
  v1::DrainResponse response;
  return Explain(FromGrpc(stub_->Drain(&context, request, &response)));
}

absl::Status StatusClient::Explain(const absl::Status& status) const {
  if (!absl::IsUnavailable(status) && !absl::IsDeadlineExceeded(status)) return status;
  return absl::UnavailableError(absl::StrCat("no coordinator answers at ", address_));
}

}  // namespace skein
