// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "base/net/credentials.h"
#include "base/net/grpc_transport.h"
#include "serve/action_server.h"
#include "skein/v1/serve_service.grpc.pb.h"

// Serves a policy's actions over gRPC.
namespace skein {

// Limits of a server of actions on `address`: each step may be a call, so that who may call makes up to 100,000 calls a
// second over one connection. Without that question (a public address with --insecure) it is any server's
// quota.
ServerLimits ActionServerLimits(const std::string& address, const Credentials& credentials = ProcessCredentials());

// The gRPC side of an ActionServer, with gRPC's callbacks. Thread-safe. Must outlive the server it is registered with.
class PolicyService final : public v1::PolicyServer::CallbackService {
 public:
  // `server` must outlive the service.
  explicit PolicyService(ActionServer* server) : server_(server) {}

  grpc::ServerUnaryReactor* Act(grpc::CallbackServerContext* context, const v1::ActRequest* request,
                                v1::ActResponse* response) override;
  grpc::ServerBidiReactor<v1::ActRequest, v1::ActResponse>* ActInTurn(grpc::CallbackServerContext* context) override;
  grpc::ServerUnaryReactor* EndSession(grpc::CallbackServerContext* context, const v1::EndSessionRequest* request,
                                       v1::EndSessionResponse* response) override;
  grpc::ServerUnaryReactor* Describe(grpc::CallbackServerContext* context, const v1::DescribeRequest* request,
                                     v1::DescribeResponse* response) override;

 private:
  ActionServer* const server_;
};

}  // namespace skein
