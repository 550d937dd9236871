// SPDX-License-Identifier: Apache-2.0
#include "base/http_server.h"

#include <sys/socket.h>

#include <map>
#include <string>
#include <thread>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "absl/synchronization/notification.h"
#include "base/call_authorization.h"
#include "base/host_port.h"
#include "base/rare_log.h"
#include "base/tls_pem.h"
#include "httplib.h"
#include "prometheus/text_serializer.h"

namespace skein {
namespace {

constexpr size_t kThreads = 4;
constexpr int kTimeoutSeconds = 5;

// Whether the connection that this thread serves has made a request: what does not speak HTTP, or TLS, never does.
thread_local bool asked = false;

class ConnectionQueue final : public httplib::ThreadPool {
 public:
  ConnectionQueue(int port, RareLog* log) : ThreadPool(kThreads), port_(port), log_(log) {}
  void enqueue(std::function<void()> serve_connection) override {
    ThreadPool::enqueue([this, serve = std::move(serve_connection)] {
      asked = false;
      serve();
      if (!asked) log_->Warn(absl::StrCat("port ", port_, ": closed a connection that made no HTTP request"));
    });
  }

 private:
  const int port_;
  RareLog* const log_;
};

bool IsHealth(const std::string& path) { return path == "/healthz" || path == "/readyz"; }

class HttplibServer : public HttpServer {
 public:
  explicit HttplibServer(const Credentials& credentials) : credentials_(credentials) {
    if (credentials.has_tls()) {
      server_ = std::make_unique<httplib::SSLServer>(
          [this](SSL_CTX& context) { return SetUpTlsServer(credentials_, &context); });
    } else {
      server_ = std::make_unique<httplib::Server>();
    }
  }

  ~HttplibServer() override {
    if (!listener_.joinable()) return;
    running_.WaitForNotification();  // Before that, stop() does nothing.
    server_->stop();
    listener_.join();  // After the server's threads, and with them all handlers.
  }

  absl::Status Start(const std::string& address) {
    if (absl::Status allowed = CheckExposure(address, credentials_); !allowed.ok()) return allowed;
    if (!server_->is_valid()) return absl::InvalidArgumentError("the TLS certificate and key cannot be used for HTTPS");
    const absl::StatusOr<HostPort> parsed = ParseHostPort(address);
    if (absl::Status can_listen = CheckCanListen(*parsed); !can_listen.ok()) return can_listen;
    // The library makes its queue once it runs.
    server_->new_task_queue = [this] {
      running_.Notify();
      return new ConnectionQueue(port_, &strangers_);
    };
    server_->set_keep_alive_max_count(1);
    server_->set_keep_alive_timeout(1);  // How long a client that says nothing can delay the end.
    server_->set_read_timeout(kTimeoutSeconds);
    server_->set_write_timeout(kTimeoutSeconds);
    // Not SO_REUSEPORT, which the library would set: two servers on one port must be an error.
    server_->set_socket_options([](int fd) {
      const int yes = 1;
      setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes));
    });
    server_->set_pre_routing_handler([this](const httplib::Request& request, httplib::Response& answer) {
      asked = true;
      Response response = Allows(request) ? Respond(request.method, request.path) : Refusal();
      answer.status = response.status;
      if (response.status == 405) answer.set_header("Allow", "GET");
      if (response.status == 401) answer.set_header("WWW-Authenticate", "Basic realm=\"skein\"");
      answer.set_header("Cache-Control", "no-store");
      answer.set_content(std::move(response.body), response.content_type);
      return httplib::Server::HandlerResponse::Handled;
    });
    const std::string host = parsed->host.empty() ? "0.0.0.0" : parsed->host;
    port_ = parsed->port != 0 ? parsed->port : server_->bind_to_any_port(host);
    if (port_ <= 0 || (parsed->port != 0 && !server_->bind_to_port(host, port_))) {
      return absl::UnavailableError(absl::StrCat("cannot listen on ", address));
    }
    listener_ = std::thread([this] { server_->listen_after_bind(); });
    return absl::OkStatus();
  }

  int port() const override { return port_; }

  void Handle(const std::string& path, Handler handler) override ABSL_LOCKS_EXCLUDED(mu_) {
    absl::MutexLock lock(&mu_);
    handlers_[path] = std::move(handler);
  }

  void ServeMetrics(std::shared_ptr<prometheus::Collectable> source) override {
    Handle("/metrics", [source = std::move(source)] {
      return Response{200, "text/plain; version=0.0.4; charset=utf-8",
                      prometheus::TextSerializer().Serialize(source->Collect())};
    });
  }

 private:
  bool Allows(const httplib::Request& request) const {
    if (IsHealth(request.path)) return true;
    if (!credentials_.token.empty()) return HasToken(request.get_header_value("Authorization"), credentials_);
    return !credentials_.has_tls() || HasCertificate(request.ssl);
  }

  Response Refusal() {
    strangers_.Warn(absl::StrCat("port ", port_, ": refused a request without the token or a certificate"));
    if (credentials_.token.empty()) return {403, "text/plain", "show a certificate of this run's CA\n"};
    return {401, "text/plain", "this run asks for its token: as bearer, or as the password with any name\n"};
  }

  Response Respond(const std::string& method, const std::string& path) ABSL_LOCKS_EXCLUDED(mu_) {
    if (method != "GET") return {405, "text/plain", "only GET is served here\n"};
    Handler handler;
    {
      absl::MutexLock lock(&mu_);
      const auto found = handlers_.find(path);
      if (found != handlers_.end()) handler = found->second;
    }
    if (!handler) return {404, "text/plain", "no such page\n"};
    return handler();
  }

  const Credentials credentials_;
  std::unique_ptr<httplib::Server> server_;
  RareLog strangers_;
  absl::Notification running_;
  std::thread listener_;
  int port_ = 0;
  absl::Mutex mu_;
  std::map<std::string, Handler> handlers_ ABSL_GUARDED_BY(mu_);
};

}  // namespace

absl::StatusOr<std::unique_ptr<HttpServer>> HttpServer::Listen(const std::string& address,
                                                               const Credentials& credentials) {
  auto server = std::make_unique<HttplibServer>(credentials);
  if (absl::Status status = server->Start(address); !status.ok()) return status;
  return server;
}

}  // namespace skein
