// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/host_port.h"
#include "grpcpp/channel.h"
#include "grpcpp/server.h"
#include "grpcpp/support/status.h"

// The one place that knows gRPC's options and its status type.
namespace skein {

inline constexpr int kMaxMessageBytes = 32 << 20;
inline constexpr unsigned kProtocolMajor = 1;
inline constexpr unsigned kProtocolMinor = 0;

absl::Status FromGrpc(const grpc::Status& status);
grpc::Status ToGrpc(const absl::Status& status);

// What gRPC's health service (grpc.health.v1) says of a process: "" is SERVING from the start, "readiness" when
// SetReady() says so.
inline constexpr char kReadiness[] = "readiness";

// Starts a server with `services` and the standard health service on `address` ("127.0.0.1:0"); *port gets the real
// port. InvalidArgument: not host:port. Unavailable: "port P is in use" or cannot listen on that address.
absl::StatusOr<std::unique_ptr<grpc::Server>> StartGrpcServer(const std::string& address,
                                                              const std::vector<grpc::Service*>& services, int* port);
absl::StatusOr<std::unique_ptr<grpc::Server>> StartGrpcServer(const std::string& address, grpc::Service* service,
                                                              int* port);

// Whether the process does what it is for, as whoever asks its health service is told.
void SetReady(grpc::Server* server, bool ready);

// A lazily connecting channel with keepalive and message limits set. It shares no connection with other channels and
// ignores proxy variables of the environment.
std::shared_ptr<grpc::Channel> OpenChannel(const std::string& address);

}  // namespace skein
