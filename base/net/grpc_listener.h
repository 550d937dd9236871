// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <thread>
#include <vector>

#include "absl/status/statusor.h"
#include "base/net/first_bytes.h"
#include "base/net/grpc_transport.h"
#include "base/net/handover.h"
#include "base/net/held_connections.h"
#include "base/net/host_port.h"
#include "base/telemetry/rare_log.h"
#include "grpcpp/security/server_credentials.h"
#include "grpcpp/server_builder.h"

namespace skein {

// Listens for a gRPC server and hands it connections whose first bytes have the right protocol (FirstBytes). The number
// of open connections is limited; connections beyond the limit are closed at once. A ConnectionGuard ends connections
// that cost memory and bring nothing, and HeldConnections delays the next ones of such an address. NewConnections
// bounds how many of one address are in the server before the guard knows them.
//   Listen -> AddTo(builder) -> BuildAndStart -> Start
// Reason: the listener of gRPC 1.51 accepts no more connections once the process has run out of file descriptors.
// Start() starts two threads, which end with the server: one accepts and watches, one gives connections to gRPC
// (Handover).
class GrpcListener {
 public:
  // An empty host means every interface. `tls`: connections begin with a TLS handshake. Unavailable: "port P is in
  // use", or it cannot listen there.
  static absl::StatusOr<std::shared_ptr<GrpcListener>> Listen(const HostPort& address, bool tls,
                                                              const ServerLimits& limits);
  ~GrpcListener();

  int port() const { return port_; }
  // The server that `builder` makes keeps `listener` until it is destroyed.
  static void AddTo(grpc::ServerBuilder* builder, std::shared_ptr<grpc::ServerCredentials> credentials,
                    std::shared_ptr<GrpcListener> listener);
  // REQUIRES: the server has been started.
  void Start();

 private:
  GrpcListener() = default;
  void AcceptAll();
  // False: no more can be accepted now.
  bool AcceptOne(int listener, FirstBytes* first_bytes, HeldConnections* held);
  // False: the server is shutting down and has not taken the connection.
  bool GiveToServer(const AcceptedConnection& connection);

  std::vector<int> sockets_;
  int port_ = 0;
  bool tls_ = false;
  int64_t message_bytes_ = 0;  // The largest message.
  int stop_ = -1;              // An eventfd.
  int most_files_ = 0;
  std::unique_ptr<grpc::experimental::ExternalConnectionAcceptor> acceptor_;
  RareLog too_many_;
  std::unique_ptr<Handover> handover_;
  std::thread thread_;
};

}  // namespace skein
