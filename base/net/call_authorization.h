// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "base/net/credentials.h"

// Decides whether a received call is allowed, from its token and its client certificate.
namespace skein {

// Role names, as DNS entries among a certificate's alternative names. One certificate may have several: `skein train`
// and `skein head` start all their processes with their own certificate.
inline constexpr char kCoordinatorName[] = "coordinator.skein";
inline constexpr char kLearnerName[] = "learner.skein";
inline constexpr char kActorName[] = "actor.skein";
inline constexpr char kClientName[] = "client.skein";
// Coordinators and learners have this name too. Callers check it instead of the host's name, because host names in a
// cluster are not known when certificates are made.
inline constexpr char kServerName[] = "server.skein";
// Name of every process that serves /metrics. Prometheus checks it (server_name of its tls_config).
inline constexpr char kMetricsName[] = "metrics.skein";

// A received call: its method ("/skein.v1.Coordinator/Join"), its `authorization` headers, and the names in the
// client certificate of its connection.
struct IncomingCall {
  absl::string_view method;
  std::vector<absl::string_view> authorization;
  std::vector<absl::string_view> certificate_names;
};

// Checks whether a server with `credentials` accepts a call. Health checks are open to all: Kubernetes sends no token,
// and they only tell whether the process serves. With a token, other calls (but KEDA's ExternalScaler) must carry
// "Bearer TOKEN"; with TLS, the certificate must have a role for the method. Error messages do not contain received
// values. Unauthenticated: no token, or a wrong one. PermissionDenied: the certificate has no such role.
absl::Status AuthorizeCall(const IncomingCall& call, const Credentials& credentials);

// Whether a request to an HTTP server carries the token: as "Bearer TOKEN" or, for browsers, as the password of HTTP
// basic authentication with any user name.
bool HasToken(absl::string_view authorization, const Credentials& credentials);

}  // namespace skein
