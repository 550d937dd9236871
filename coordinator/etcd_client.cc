// SPDX-License-Identifier: Apache-2.0
#include "coordinator/etcd_client.h"

#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "base/net/call_deadline.h"
#include "base/net/credentials.h"
#include "base/net/grpc_transport.h"
#include "base/net/host_port.h"

namespace skein {
namespace {

constexpr char kScheme[] = "etcd://";
constexpr char kTlsScheme[] = "etcds://";

// Without the run's token: it is never sent to etcd.
Credentials CredentialsFor(const EtcdAddress& address) {
  if (!address.tls) return Credentials();
  Credentials credentials = ProcessCredentials();
  credentials.token.clear();
  return credentials;
}

}  // namespace

std::string EndOfPrefix(std::string prefix) {
  ++prefix.back();
  return prefix;
}

bool IsEtcdAddress(const std::string& url) {
  return absl::StartsWith(url, kScheme) || absl::StartsWith(url, kTlsScheme);
}

absl::StatusOr<EtcdAddress> ParseEtcdAddress(const std::string& url) {
  const auto wrong = [&url](const std::string& why) {
    return absl::InvalidArgumentError(absl::StrCat("'", url, "': ", why, "; want etcd://host:port[,host:port]/prefix"));
  };
  if (!IsEtcdAddress(url)) return wrong("not etcd");
  EtcdAddress address;
  address.tls = absl::StartsWith(url, kTlsScheme);
  const std::string rest(absl::StripPrefix(url, address.tls ? kTlsScheme : kScheme));
  const size_t slash = rest.find('/');
  if (slash == std::string::npos || slash + 1 == rest.size()) {
    return wrong("no prefix, which keeps runs apart");
  }
  absl::StatusOr<std::vector<std::string>> endpoints = ParseAddresses(rest.substr(0, slash));
  if (!endpoints.ok()) return wrong(std::string(endpoints.status().message()));
  address.endpoints = *std::move(endpoints);
  address.prefix = rest.substr(slash);
  while (address.prefix.back() == '/') address.prefix.pop_back();
  if (address.prefix.empty()) return wrong("no prefix, which keeps runs apart");
  for (const char c : address.prefix) {
    if (c <= ' ' || c > '~') return wrong("the prefix has a character that is not printable ASCII");
  }
  return address;
}

EtcdClient::EtcdClient(const EtcdAddress& address, absl::Duration timeout) : timeout_(timeout) {
  for (const std::string& endpoint : address.endpoints) {
    const std::shared_ptr<grpc::Channel> channel = OpenChannel(endpoint, CredentialsFor(address));
    endpoints_.push_back({etcdserverpb::KV::NewStub(channel), etcdserverpb::Lease::NewStub(channel)});
  }
}

template <typename Call>
absl::Status EtcdClient::Run(Call call) {
  absl::Status status;
  size_t index = 0;
  {
    absl::MutexLock lock(&mu_);
    index = current_;
  }
  for (size_t attempt = 0; attempt < endpoints_.size(); ++attempt) {
    grpc::ClientContext context;
    SetTimeout(&context, timeout_);
    status = FromGrpc(call(&endpoints_[index], &context));
    if (!absl::IsUnavailable(status) && !absl::IsDeadlineExceeded(status)) return status;
    index = (index + 1) % endpoints_.size();
    absl::MutexLock lock(&mu_);
    current_ = index;
  }
  return absl::UnavailableError(absl::StrCat("etcd does not answer: ", status.message()));
}

absl::StatusOr<etcdserverpb::RangeResponse> EtcdClient::ReadPrefix(const std::string& prefix) {
  etcdserverpb::RangeRequest request;
  request.set_key(prefix);
  request.set_range_end(EndOfPrefix(prefix));
  etcdserverpb::RangeResponse response;
  const absl::Status status = Run([&](auto* at, auto* context) { return at->kv->Range(context, request, &response); });
  if (!status.ok()) return status;
  return response;
}

absl::StatusOr<etcdserverpb::RangeResponse> EtcdClient::ReadKey(const std::string& key) {
  etcdserverpb::RangeRequest request;
  request.set_key(key);
  etcdserverpb::RangeResponse response;
  const absl::Status status = Run([&](auto* at, auto* context) { return at->kv->Range(context, request, &response); });
  if (!status.ok()) return status;
  return response;
}

absl::StatusOr<etcdserverpb::TxnResponse> EtcdClient::Transact(const etcdserverpb::TxnRequest& request) {
  etcdserverpb::TxnResponse response;
  const absl::Status status = Run([&](auto* at, auto* context) { return at->kv->Txn(context, request, &response); });
  if (!status.ok()) return status;
  return response;
}

absl::StatusOr<etcdserverpb::LeaseGrantResponse> EtcdClient::Grant(int64_t seconds) {
  etcdserverpb::LeaseGrantRequest request;
  request.set_ttl(seconds);
  etcdserverpb::LeaseGrantResponse response;
  const absl::Status status =
      Run([&](auto* at, auto* context) { return at->lease->LeaseGrant(context, request, &response); });
  if (!status.ok()) return status;
  if (!response.error().empty()) return absl::InternalError(absl::StrCat("etcd grants no lease: ", response.error()));
  return response;
}

absl::StatusOr<int64_t> EtcdClient::KeepAlive(int64_t lease) {
  etcdserverpb::LeaseKeepAliveRequest request;
  request.set_id(lease);
  etcdserverpb::LeaseKeepAliveResponse response;
  const absl::Status status = Run([&](auto* at, auto* context) {
    const auto stream = at->lease->LeaseKeepAlive(context);
    const bool answered = stream->Write(request) && stream->Read(&response);
    stream->WritesDone();
    if (answered) context->TryCancel();  // There is nothing more to come.
    const grpc::Status end = stream->Finish();
    if (answered) return grpc::Status::OK;
    return end.ok() ? grpc::Status(grpc::StatusCode::UNAVAILABLE, "the stream ended without an answer") : end;
  });
  if (!status.ok()) return status;
  if (response.ttl() <= 0) return absl::NotFoundError("the lease has ended");
  return response.ttl();
}

absl::Status EtcdClient::Revoke(int64_t lease) {
  etcdserverpb::LeaseRevokeRequest request;
  request.set_id(lease);
  etcdserverpb::LeaseRevokeResponse response;
  return Run([&](auto* at, auto* context) { return at->lease->LeaseRevoke(context, request, &response); });
}

}  // namespace skein
