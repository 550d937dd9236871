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

// Credentials as gRPC wants them.
namespace skein {

// Of a server: TLS that demands a certificate of the CA, or plain text; each call, also of a method that there is not,
// is put to AuthorizeCall() before anything else sees it. InvalidArgument: these are no certificate, key and CA.
absl::StatusOr<std::shared_ptr<grpc::ServerCredentials>> MakeServerCredentials(const Credentials& credentials);

// A channel that checks the server's certificate for kServerName and sends the token with each call, without TLS too.
std::shared_ptr<grpc::Channel> MakeChannel(const std::string& address, const Credentials& credentials,
                                           grpc::ChannelArguments arguments);

// Whether the caller's certificate has `name`, e.g. kActorName; always if the call came without TLS, where everyone
// with the token is as good. PermissionDenied.
absl::Status CheckCertificateName(const grpc::ServerContextBase& context, const std::string& name);

// Tells one caller's certificate from another: its SHA-256 in hex. Empty if the call came without TLS.
std::string CertificateDigest(const grpc::ServerContextBase& context);

// Sends gRPC's own log lines to ours, each place in its sources at most once in ten seconds.
void RouteGrpcLog();

// Whether gRPC has said on this thread, since it was asked last, that its server is shutting down and that it did not
// take over the connection it was just given. It says so nowhere else. REQUIRES: RouteGrpcLog().
bool TookNoConnection();

}  // namespace skein
