// SPDX-License-Identifier: Apache-2.0
#include "base/net/grpc_transport.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "base/net/grpc_credentials.h"
#include "base/net/grpc_listener.h"
#include "grpc/grpc.h"
#include "grpcpp/health_check_service_interface.h"
#include "grpcpp/resource_quota.h"
#include "grpcpp/server_builder.h"
#include "grpcpp/support/channel_arguments.h"

namespace skein {
namespace {

// A peer that is silent for kKeepaliveMillis is pinged and given up kKeepaliveTimeoutMillis later.
constexpr int kKeepaliveMillis = 10'000;
constexpr int kKeepaliveTimeoutMillis = 5'000;
constexpr int kMinPingIntervalMillis = 5'000;
constexpr int kHandshakeTimeoutMillis = 10'000;
constexpr int kMaxIdleMillis = 300'000;
constexpr int kFirstReconnectMillis = 100;
constexpr int kMaxReconnectMillis = 5'000;
// gRPC calls it the smallest back-off; it is how long one attempt to connect may take.
constexpr int kConnectTimeoutMillis = 5'000;

// Keeps gRPC's library alive until the process ends: taking it down with the last channel can block for 10 s.
void KeepGrpcAlive() {
  static const bool kept = (RouteGrpcLog(), grpc_init(), true);
  (void)kept;
}

}  // namespace

absl::Status FromGrpc(const grpc::Status& status) {
  if (status.ok()) return absl::OkStatus();
  // gRPC itself says nothing here.
  if (status.error_code() == grpc::UNIMPLEMENTED && status.error_message().empty()) {
    return absl::UnimplementedError("a server of another kind listens there, which knows no such call (UNIMPLEMENTED)");
  }
  return absl::Status(static_cast<absl::StatusCode>(status.error_code()), status.error_message());
}

grpc::Status ToGrpc(const absl::Status& status) {
  if (status.ok()) return grpc::Status::OK;
  return grpc::Status(static_cast<grpc::StatusCode>(status.code()), std::string(status.message()));
}

absl::StatusOr<std::unique_ptr<grpc::Server>> StartGrpcServer(const std::string& address, grpc::Service* service,
                                                              int* port) {
  return StartGrpcServer(address, std::vector<grpc::Service*>{service}, port);
}

absl::StatusOr<std::unique_ptr<grpc::Server>> StartGrpcServer(const std::string& address,
                                                              const std::vector<grpc::Service*>& services, int* port,
                                                              const ServerLimits& limits,
                                                              const Credentials& credentials) {
  KeepGrpcAlive();
  if (absl::Status allowed = CheckExposure(address, credentials); !allowed.ok()) return allowed;
  const auto asking = MakeServerCredentials(credentials, limits.calls_per_second);
  if (!asking.ok()) return asking.status();
  auto listener = GrpcListener::Listen(*ParseHostPort(address), credentials.has_tls(), limits);
  if (!listener.ok()) return listener.status();

  grpc::EnableDefaultHealthCheckService(true);
  grpc::ServerBuilder builder;
  GrpcListener::AddTo(&builder, *asking, *listener);
  for (grpc::Service* service : services) builder.RegisterService(service);
  builder.SetMaxReceiveMessageSize(limits.message_bytes);
  builder.SetMaxSendMessageSize(kMaxMessageBytes);
  builder.SetResourceQuota(grpc::ResourceQuota("skein").Resize(limits.memory_bytes));
  builder.AddChannelArgument(GRPC_ARG_ENABLE_CHANNELZ, 1);  // StreamCounts.
  builder.AddChannelArgument(GRPC_ARG_MAX_CONCURRENT_STREAMS, kMaxCallsPerConnection);
  builder.AddChannelArgument(GRPC_ARG_SERVER_HANDSHAKE_TIMEOUT_MS, kHandshakeTimeoutMillis);
  builder.AddChannelArgument(GRPC_ARG_MAX_CONNECTION_IDLE_MS, kMaxIdleMillis);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIME_MS, kKeepaliveMillis);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, kKeepaliveTimeoutMillis);
  // Above 0, gRPC 1.51 prepares a GOAWAY for each ping beyond so many, hundreds of MiB in a flood.
  builder.AddChannelArgument(GRPC_ARG_HTTP2_MAX_PING_STRIKES, 0);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1);
  builder.AddChannelArgument(GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS, kMinPingIntervalMillis);
  std::unique_ptr<grpc::Server> server = builder.BuildAndStart();
  if (server == nullptr) return absl::UnavailableError(absl::StrCat("cannot listen on ", address));
  *port = (*listener)->port();
  (*listener)->Start();
  SetReady(server.get(), false);
  return server;
}

void SetReady(grpc::Server* server, bool ready) {
  server->GetHealthCheckService()->SetServingStatus(kReadiness, ready);
}

std::shared_ptr<grpc::Channel> OpenChannel(const std::string& address, const Credentials& credentials) {
  KeepGrpcAlive();
  grpc::ChannelArguments arguments;
  arguments.SetMaxReceiveMessageSize(kMaxMessageBytes);
  arguments.SetMaxSendMessageSize(kMaxMessageBytes);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIME_MS, kKeepaliveMillis);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, kKeepaliveTimeoutMillis);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1);
  arguments.SetInt(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0);
  arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, kFirstReconnectMillis);
  arguments.SetInt(GRPC_ARG_MIN_RECONNECT_BACKOFF_MS, kConnectTimeoutMillis);
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, kMaxReconnectMillis);
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  return MakeChannel(address, credentials, std::move(arguments));
}

}  // namespace skein
