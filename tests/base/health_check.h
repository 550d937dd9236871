// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "base/net/grpc_transport.h"
#include "grpcpp/client_context.h"
#include "grpcpp/completion_queue.h"
#include "grpcpp/generic/generic_stub.h"

namespace skein {

// What the health service (grpc.health.v1) on 127.0.0.1:port says of `service`, asked as Kubernetes asks: "SERVING",
// "NOT_SERVING", or what is wrong.
inline std::string CheckHealth(int port, const std::string& service) {
  grpc::GenericStub stub(OpenChannel(JoinHostPort("127.0.0.1", port)));
  grpc::ClientContext context;
  context.set_deadline(absl::ToChronoTime(absl::Now() + absl::Seconds(10)));
  grpc::CompletionQueue queue;
  std::string request;  // HealthCheckRequest: the name is field 1.
  if (!service.empty()) request = absl::StrCat("\x0a", std::string(1, static_cast<char>(service.size())), service);
  const grpc::Slice bytes(request);
  auto call = stub.PrepareUnaryCall(&context, "/grpc.health.v1.Health/Check", grpc::ByteBuffer(&bytes, 1), &queue);
  call->StartCall();
  grpc::ByteBuffer answer;
  grpc::Status status;
  call->Finish(&answer, &status, nullptr);
  void* tag = nullptr;
  bool ok = false;
  queue.Next(&tag, &ok);
  if (!status.ok()) return FromGrpc(status).ToString();
  grpc::Slice slice;
  if (!answer.DumpToSingleSlice(&slice).ok()) return "no answer";
  const std::string response(slice.begin(), slice.end());  // HealthCheckResponse: the status is field 1.
  return response == "\x08\x01" ? "SERVING" : response == "\x08\x02" ? "NOT_SERVING" : "some other answer";
}

}  // namespace skein
