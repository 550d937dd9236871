// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/net/credentials.h"
#include "base/net/host_port.h"
#include "base/net/protocol.h"
#include "grpcpp/channel.h"
#include "grpcpp/server.h"
#include "grpcpp/support/status.h"

// Servers and channels of gRPC. Only this file sets gRPC's options and converts its status type.
namespace skein {

inline constexpr int kMaxMessageBytes = 32 << 20;

// Limits of a server. A larger message fails with RESOURCE_EXHAUSTED, and its received part is dropped. When memory for
// received data runs short, idle connections are closed and reads wait; finally the largest calls are cancelled.
// Connections beyond 32,000, or beyond the process's limit of open files, are closed at once. A client has at most
// kMaxCallsPerConnection open calls per connection; further calls wait on its side. A connection is closed if it has
// not sent its protocol's first bytes within 10 s, or has no open call for 5 minutes.
struct ServerLimits {
  int message_bytes = kMaxMessageBytes;
  size_t memory_bytes = size_t{8} << 30;
  // Received bytes of a connection that wait to be read. What a peer can send before a ConnectionGuard looks depends on
  // it. 0: as many as the kernel allows.
  int unread_bytes = 0;
  // Of one connection, of all methods together. Beyond it a call is refused (RESOURCE_EXHAUSTED) before a handler has
  // it; by then it has cost little.
  double calls_per_second = 2000;
};
// For servers that receive only small messages.
inline constexpr ServerLimits kControlPlaneLimits{1 << 20, size_t{256} << 20, 8 << 10};
inline constexpr int kMaxCallsPerConnection = 64;

absl::Status FromGrpc(const grpc::Status& status);
grpc::Status ToGrpc(const absl::Status& status);

// Services of gRPC's health service (grpc.health.v1): "" is SERVING from the start; "readiness" is SERVING as set by
// SetReady().
inline constexpr char kReadiness[] = "readiness";

// Starts a server with `services` and the standard health service on `address` ("127.0.0.1:0"); *port gets the real
// port. Raises the process's limit of open files to its maximum. Each call is checked by AuthorizeCall() with
// `credentials`. InvalidArgument: not host:port, or CheckExposure() forbids it. Unavailable: "port P is in use" or
// cannot listen on that address.
absl::StatusOr<std::unique_ptr<grpc::Server>> StartGrpcServer(const std::string& address,
                                                              const std::vector<grpc::Service*>& services, int* port,
                                                              const ServerLimits& limits = {},
                                                              const Credentials& credentials = ProcessCredentials());
absl::StatusOr<std::unique_ptr<grpc::Server>> StartGrpcServer(const std::string& address, grpc::Service* service,
                                                              int* port);

// Sets whether the health service reports the process as ready.
void SetReady(grpc::Server* server, bool ready);

// Opens a lazily connecting channel with keepalive and message limits, authenticated by `credentials`. It shares no
// connection with other channels and ignores the environment's proxy variables.
std::shared_ptr<grpc::Channel> OpenChannel(const std::string& address,
                                           const Credentials& credentials = ProcessCredentials());

}  // namespace skein
