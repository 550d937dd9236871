// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "base/net/credentials.h"

namespace skein {

// Names (DNS entries among a certificate's alternative names) that say what its owner is. One certificate may have
// several: `skein train` and `skein head` start all processes with their own.
inline constexpr char kCoordinatorName[] = "coordinator.skein";
inline constexpr char kLearnerName[] = "learner.skein";
inline constexpr char kActorName[] = "actor.skein";
inline constexpr char kClientName[] = "client.skein";
// Coordinators and learners have this one too; callers check it instead of the host's name, which in a
// cluster is not known when certificates are made.
inline constexpr char kServerName[] = "server.skein";
// Of whatever serves /metrics: what Prometheus checks (server_name of its tls_config).
inline constexpr char kMetricsName[] = "metrics.skein";

// A call as it arrives: its method ("/skein.v1.Coordinator/Join"), its `authorization` headers, and the names of the
// certificate that the connection was made with.
struct IncomingCall {
  absl::string_view method;
  std::vector<absl::string_view> authorization;
  std::vector<absl::string_view> certificate_names;
};

// Whether a server with `credentials` answers it. Health checks are open to all: Kubernetes has no token to send, and
// all they say is whether the process serves. With a token, anything else brings "Bearer TOKEN"; with TLS, its
// certificate has a role that needs the method. No message holds what was sent. Unauthenticated: no token, or a wrong
// one. PermissionDenied: another role's.
absl::Status AuthorizeCall(const IncomingCall& call, const Credentials& credentials);

// The same for a request to an HTTP server: a token comes as "Bearer TOKEN" or, as browsers ask people for it, as the
// password of HTTP's basic authentication with any name.
bool HasToken(absl::string_view authorization, const Credentials& credentials);

}  // namespace skein
