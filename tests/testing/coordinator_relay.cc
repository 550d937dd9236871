// SPDX-License-Identifier: Apache-2.0
#include "tests/testing/coordinator_relay.h"

#include <chrono>
#include <cstdlib>
#include <iostream>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/net/grpc_transport.h"
#include "grpcpp/client_context.h"

namespace skein {

class CoordinatorRelay::Service final : public v1::Coordinator::Service {
 public:
  Service(const std::string& coordinator, std::string learner_address)
      : stub_(v1::Coordinator::NewStub(OpenChannel(coordinator))), learner_address_(std::move(learner_address)) {}

  grpc::Status Join(grpc::ServerContext* context, const v1::JoinRequest* request, v1::JoinResponse* response) override {
    return Redirected(Forward(context, &v1::Coordinator::Stub::Join, *request, response), response);
  }
  grpc::Status Heartbeat(grpc::ServerContext* context, const v1::HeartbeatRequest* request,
                         v1::HeartbeatResponse* response) override {
    return Redirected(Forward(context, &v1::Coordinator::Stub::Heartbeat, *request, response), response);
  }
  grpc::Status Leave(grpc::ServerContext* context, const v1::LeaveRequest* request,
                     v1::LeaveResponse* response) override {
    return Forward(context, &v1::Coordinator::Stub::Leave, *request, response);
  }
  grpc::Status ArriveAtBarrier(grpc::ServerContext* context, const v1::BarrierRequest* request,
                               v1::BarrierResponse* response) override {
    return Forward(context, &v1::Coordinator::Stub::ArriveAtBarrier, *request, response);
  }

 private:
  template <typename Method, typename Request, typename Response>
  grpc::Status Forward(grpc::ServerContext* context, Method method, const Request& request, Response* response) {
    const std::unique_ptr<grpc::ClientContext> onward = grpc::ClientContext::FromServerContext(*context);
    return (stub_.get()->*method)(onward.get(), request, response);
  }
  template <typename Response>
  grpc::Status Redirected(const grpc::Status& status, Response* response) const {
    if (!response->learner_address().empty()) response->set_learner_address(learner_address_);
    return status;
  }

  const std::unique_ptr<v1::Coordinator::Stub> stub_;
  const std::string learner_address_;
};

CoordinatorRelay::CoordinatorRelay(const std::string& coordinator, const std::string& learner_address)
    : service_(std::make_unique<Service>(coordinator, learner_address)) {
  int port = 0;
  auto server = StartGrpcServer("127.0.0.1:0", service_.get(), &port);
  if (!server.ok()) {
    std::cerr << "coordinator relay: " << server.status() << std::endl;
    std::abort();
  }
  server_ = *std::move(server);
  address_ = absl::StrCat("127.0.0.1:", port);
}

CoordinatorRelay::~CoordinatorRelay() { server_->Shutdown(std::chrono::system_clock::now()); }

}  // namespace skein
