// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>

#include "base/net/http_server.h"
#include "prometheus/collectable.h"
#include "serve/action_server.h"

namespace skein {

// Answers a request as JSON, waiting for the action:
//   {"session": "a", "observation": [0.1, ...], "reset": true, "sample": false} -> {"action": [0.3, ...], "env_steps":
//   N}
// With several rows "observations" and "resets" are lists of them, and the answer has "actions". Only observations are
// required. Status 400: it is no such object, or as ActionServer::Act; 409: Aborted; 503: ResourceExhausted; the body
// is
// {"error": "..."}.
HttpServer::Response ActByJson(ActionServer* server, const std::string& body);

// Serves POST /v1/act, GET /v1/policy (what PolicyServer.Describe says), /metrics, /healthz and /readyz. `server` must
// outlive `http`.
void ServeActions(HttpServer* http, ActionServer* server, std::shared_ptr<prometheus::Collectable> metrics);

}  // namespace skein
