// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "base/net/credentials.h"
#include "base/net/grpc_transport.h"
#include "serve/action_server.h"
#include "skein/v1/serve_service.grpc.pb.h"

// Serves a policy's actions over gRPC.
namespace skein {

// The limits of a server of actions on `address`. A client may call once for each step, so a connection may make
// 100,000 calls a second. On a public address with --insecure, where clients need no credentials, it may make as many
// as with any other server.
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
