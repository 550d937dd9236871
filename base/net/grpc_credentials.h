// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/net/credentials.h"
#include "grpcpp/channel.h"
#include "grpcpp/security/server_credentials.h"
#include "grpcpp/server_context.h"
#include "grpcpp/support/channel_arguments.h"

// Converts credentials to gRPC's types.
namespace skein {

// For a server: TLS that requires a client certificate of the CA, or plain text. Each call, also of an unknown method,
// passes AuthorizeCall() before any handler. A connection's calls beyond `calls_per_second` are refused there, too,
// since a call costs little until a handler has it. InvalidArgument: certificate, key or CA is not valid.
absl::StatusOr<std::shared_ptr<grpc::ServerCredentials>> MakeServerCredentials(const Credentials& credentials,
                                                                               double calls_per_second);

// A channel that checks the server's certificate for kServerName and sends the token with each call, without TLS too.
std::shared_ptr<grpc::Channel> MakeChannel(const std::string& address, const Credentials& credentials,
                                           grpc::ChannelArguments arguments);

// Checks that the caller's certificate has `name`, e.g. kActorName. Always OK without TLS, where all callers with the
// token have equal rights. PermissionDenied: it has not.
absl::Status CheckCertificateName(const grpc::ServerContextBase& context, const std::string& name);

// Identifies the caller's certificate: its SHA-256 in hex. Empty if the call came without TLS.
std::string CertificateDigest(const grpc::ServerContextBase& context);

// Redirects gRPC's log lines to Skein's log; each place in gRPC's sources logs at most once in ten seconds.
void RouteGrpcLog();

// Whether gRPC has logged on this thread, since the last call, that it did not take over an external connection because
// its server is shutting down. gRPC reports this only in its log. REQUIRES: RouteGrpcLog().
bool TookNoConnection();

}  // namespace skein
