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

// The one place that knows gRPC's options and its status type.
namespace skein {

inline constexpr int kMaxMessageBytes = 32 << 20;

// Limits of a server. Beyond them: a larger message is RESOURCE_EXHAUSTED, whatever has come of it
// is dropped; where memory for what is received runs short, idle connections are closed and reads wait, in the end the
// largest calls are cancelled; connections beyond 32,000, or what files the system lets this process have, are closed
// at once. A client has at most kMaxCallsPerConnection calls open, the next ones wait on its side. A connection that
// has not said within 10 s what it wants, or has no call open for 5 minutes, is closed.
struct ServerLimits {
  int message_bytes = kMaxMessageBytes;
  size_t memory_bytes = size_t{8} << 30;
};
// Of servers that take small messages only.
inline constexpr ServerLimits kControlPlaneLimits{1 << 20, size_t{256} << 20};
inline constexpr int kMaxCallsPerConnection = 64;

absl::Status FromGrpc(const grpc::Status& status);
grpc::Status ToGrpc(const absl::Status& status);

// What gRPC's health service (grpc.health.v1) says of a process: "" is SERVING from the start, "readiness" when
// SetReady() says so.
inline constexpr char kReadiness[] = "readiness";

// Starts a server with `services` and the standard health service on `address` ("127.0.0.1:0"); *port gets the real
// port. Takes as many files (connections) as the system lets this process have. Callers must have what `credentials`
// ask for. InvalidArgument: not host:port, or CheckExposure() forbids it. Unavailable: "port P is in use" or cannot
// listen on that address.
absl::StatusOr<std::unique_ptr<grpc::Server>> StartGrpcServer(const std::string& address,
                                                              const std::vector<grpc::Service*>& services, int* port,
                                                              const ServerLimits& limits = {},
                                                              const Credentials& credentials = ProcessCredentials());
absl::StatusOr<std::unique_ptr<grpc::Server>> StartGrpcServer(const std::string& address, grpc::Service* service,
                                                              int* port);

// Whether the process does what it is for: the answer of its health service.
void SetReady(grpc::Server* server, bool ready);

// A lazily connecting channel with keepalive and message limits set, that proves itself by `credentials`. It shares no
// connection with other channels and ignores proxy variables of the environment.
std::shared_ptr<grpc::Channel> OpenChannel(const std::string& address,
                                           const Credentials& credentials = ProcessCredentials());

}  // namespace skein
