// SPDX-License-Identifier: Apache-2.0
#include "tests/coordinator/etcd_relay.h"

#include <atomic>
#include <chrono>
#include <climits>
#include <cstdlib>
#include <iostream>

#include "absl/strings/str_cat.h"
#include "base/net/grpc_transport.h"
#include "etcd/etcd.grpc.pb.h"
#include "grpcpp/client_context.h"

namespace skein {

class EtcdRelay::Kv final : public etcdserverpb::KV::Service {
 public:
  explicit Kv(const std::string& etcd) : stub_(etcdserverpb::KV::NewStub(OpenChannel(etcd))) {}

  grpc::Status Range(grpc::ServerContext* context, const etcdserverpb::RangeRequest* request,
                     etcdserverpb::RangeResponse* response) override {
    return stub_->Range(grpc::ClientContext::FromServerContext(*context).get(), *request, response);
  }
  grpc::Status Txn(grpc::ServerContext* context, const etcdserverpb::TxnRequest* request,
                   etcdserverpb::TxnResponse* response) override {
    if (left_.fetch_sub(1) <= 0) {
      cut_ = true;
      return {grpc::StatusCode::UNAVAILABLE, "cut off"};
    }
    return stub_->Txn(grpc::ClientContext::FromServerContext(*context).get(), *request, response);
  }

  std::atomic<int> left_{INT_MAX};
  std::atomic<bool> cut_{false};

 private:
  const std::unique_ptr<etcdserverpb::KV::Stub> stub_;
};

class EtcdRelay::Lease final : public etcdserverpb::Lease::Service {
 public:
  explicit Lease(const std::string& etcd) : stub_(etcdserverpb::Lease::NewStub(OpenChannel(etcd))) {}

  grpc::Status LeaseGrant(grpc::ServerContext* context, const etcdserverpb::LeaseGrantRequest* request,
                          etcdserverpb::LeaseGrantResponse* response) override {
    return stub_->LeaseGrant(grpc::ClientContext::FromServerContext(*context).get(), *request, response);
  }
  grpc::Status LeaseRevoke(grpc::ServerContext* context, const etcdserverpb::LeaseRevokeRequest* request,
                           etcdserverpb::LeaseRevokeResponse* response) override {
    return stub_->LeaseRevoke(grpc::ClientContext::FromServerContext(*context).get(), *request, response);
  }
  grpc::Status LeaseKeepAlive(grpc::ServerContext* context,
                              grpc::ServerReaderWriter<etcdserverpb::LeaseKeepAliveResponse,
                                                       etcdserverpb::LeaseKeepAliveRequest>* stream) override {
    const std::unique_ptr<grpc::ClientContext> onward = grpc::ClientContext::FromServerContext(*context);
    const auto etcd = stub_->LeaseKeepAlive(onward.get());
    etcdserverpb::LeaseKeepAliveRequest request;
    etcdserverpb::LeaseKeepAliveResponse response;
    while (stream->Read(&request) && etcd->Write(request) && etcd->Read(&response) && stream->Write(response)) {
    }
    onward->TryCancel();
    etcd->Finish();
    return grpc::Status::OK;
  }

 private:
  const std::unique_ptr<etcdserverpb::Lease::Stub> stub_;
};

EtcdRelay::EtcdRelay(const std::string& etcd) : kv_(std::make_unique<Kv>(etcd)), lease_(std::make_unique<Lease>(etcd)) {
  int port = 0;
  auto server = StartGrpcServer("127.0.0.1:0", {kv_.get(), lease_.get()}, &port);
  if (!server.ok()) {
    std::cerr << "etcd relay: " << server.status() << std::endl;
    std::abort();
  }
  server_ = *std::move(server);
  address_ = absl::StrCat("127.0.0.1:", port);
}

EtcdRelay::~EtcdRelay() { server_->Shutdown(std::chrono::system_clock::now()); }

void EtcdRelay::CutAfter(int transactions) {
  kv_->left_ = transactions;
  kv_->cut_ = false;
}

bool EtcdRelay::has_cut() const { return kv_->cut_; }

}  // namespace skein
