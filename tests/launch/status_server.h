// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "base/net/grpc_transport.h"
#include "gtest/gtest.h"
#include "skein/v1/coordinator_service.grpc.pb.h"

namespace skein {

// A coordinator that answers GetStatus with one and the same answer and knows only actor-1.
class StatusServer : public v1::Coordinator::Service {
 public:
  explicit StatusServer(v1::StatusResponse status) : status_(std::move(status)) {
    auto server = StartGrpcServer("127.0.0.1:0", this, &port_);
    EXPECT_TRUE(server.ok()) << server.status();
    server_ = *std::move(server);
  }
  ~StatusServer() override { server_->Shutdown(); }

  void WaitForCall() { called_.WaitForNotification(); }

  std::string address() const { return absl::StrCat("127.0.0.1:", port_); }

 private:
  grpc::Status GetStatus(grpc::ServerContext*, const v1::GetStatusRequest*, v1::StatusResponse* response) override {
    *response = status_;
    if (!called_.HasBeenNotified()) called_.Notify();
    return grpc::Status::OK;
  }
  grpc::Status Drain(grpc::ServerContext*, const v1::DrainRequest* request, v1::DrainResponse*) override {
    if (request->member_id() == "actor-1") return grpc::Status::OK;
    return {grpc::StatusCode::NOT_FOUND, "there is only actor-1"};
  }

  const v1::StatusResponse status_;
  absl::Notification called_;  // For GetStatus, which its one caller calls once at a time.
  int port_ = 0;
  std::unique_ptr<grpc::Server> server_;
};

}  // namespace skein
