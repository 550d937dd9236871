// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "base/net/credentials.h"
#include "prometheus/collectable.h"

namespace skein {

// A small HTTP server (cpp-httplib) for /metrics, read-only pages and what is posted to it; HTTPS if there is a
// certificate. Except at /healthz and /readyz, a client must have the token or, without a token, a certificate.
// Thread-safe.
class HttpServer {
 public:
  struct Response {
    int status = 200;
    std::string content_type;
    std::string body;
  };
  using Handler = std::function<Response()>;  // Runs on a server thread, possibly several at once.

  // Listens on `address` ("127.0.0.1:0", "[::1]:9100"); port 0 takes a free one.
  // InvalidArgument: not host:port, or CheckExposure() forbids it. Unavailable: "port P is in use", cannot listen.
  static absl::StatusOr<std::unique_ptr<HttpServer>> Listen(const std::string& address,
                                                            const Credentials& credentials = ProcessCredentials());
  virtual ~HttpServer() = default;

  virtual int port() const = 0;
  // GET of exactly `path` answers with handler's response; anything else is 404, other methods 405.
  virtual void Handle(const std::string& path, Handler handler) = 0;
  // POST of exactly `path`, with the request's body, of at most 64 KiB with all headers.
  using PostHandler = std::function<Response(const std::string& body)>;
  virtual void HandlePost(const std::string& path, PostHandler handler) = 0;
  // Serves the metrics of `source` as Prometheus text at /metrics. `source` may have several callers.
  virtual void ServeMetrics(std::shared_ptr<prometheus::Collectable> source) = 0;
};

}  // namespace skein
