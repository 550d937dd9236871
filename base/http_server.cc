// SPDX-License-Identifier: Apache-2.0
#include "base/http_server.h"

#include <netdb.h>
#include <sys/socket.h>

#include <cstring>
#include <filesystem>
#include <map>
#include <string>
#include <system_error>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "base/host_port.h"
#include "civetweb.h"
#include "prometheus/text_serializer.h"

namespace skein {
namespace {

constexpr char kThreads[] = "4";
constexpr char kRequestTimeoutMillis[] = "10000";

// civetweb takes numeric addresses only: the first that `host` resolves to.
absl::StatusOr<std::string> NumericHost(const std::string& host) {
  addrinfo hints = {};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  const int code = getaddrinfo(host.c_str(), nullptr, &hints, &found);
  if (code != 0) return absl::UnavailableError(absl::StrCat("cannot listen on ", host, ": ", gai_strerror(code)));
  char text[NI_MAXHOST] = "";
  getnameinfo(found->ai_addr, found->ai_addrlen, text, sizeof(text), nullptr, 0, NI_NUMERICHOST);
  freeaddrinfo(found);
  return std::string(text);
}

// The numeric host and the port that `fd` listens on; an empty host if it does not listen.
HostPort ListeningAddress(int fd) {
  int listening = 0;
  socklen_t size = sizeof(listening);
  sockaddr_storage address = {};
  socklen_t address_size = sizeof(address);
  char host[NI_MAXHOST] = "";
  char port[NI_MAXSERV] = "";
  HostPort result;
  if (getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listening, &size) == 0 && listening != 0 &&
      getsockname(fd, reinterpret_cast<sockaddr*>(&address), &address_size) == 0 &&
      getnameinfo(reinterpret_cast<sockaddr*>(&address), address_size, host, sizeof(host), port, sizeof(port),
                  NI_NUMERICHOST | NI_NUMERICSERV) == 0 &&
      absl::SimpleAtoi(port, &result.port)) {
    result.host = host;
  }
  return result;
}

// This process's listening socket of that address, or -1.
int FindListeningSocket(const HostPort& address) {
  std::error_code error;
  for (std::filesystem::directory_iterator it("/proc/self/fd", error), end; !error && it != end; it.increment(error)) {
    int fd = -1;
    if (!absl::SimpleAtoi(it->path().filename().string(), &fd)) continue;
    const HostPort found = ListeningAddress(fd);
    if (found.port == address.port && found.host == address.host) return fd;
  }
  return -1;
}

class CivetHttpServer : public HttpServer {
 public:
  ~CivetHttpServer() override {
    if (context_ == nullptr) return;
    // civetweb looks whether to stop every two seconds; a shut listening socket wakes it at once.
    const int fd = FindListeningSocket({host_, port_});
    if (fd >= 0) shutdown(fd, SHUT_RDWR);
    mg_stop(context_);  // Joins the server threads, and with them all handlers.
  }

  absl::Status Start(const std::string& address) {
    absl::StatusOr<HostPort> parsed = ParseHostPort(address);
    if (!parsed.ok()) return parsed.status();
    if (absl::Status can_listen = CheckCanListen(*parsed); !can_listen.ok()) return can_listen;
    std::string listen = std::to_string(parsed->port);
    if (!parsed->host.empty()) {
      absl::StatusOr<std::string> host = NumericHost(parsed->host);
      if (!host.ok()) return host.status();
      host_ = *host;
      listen = JoinHostPort(host_, parsed->port);
    }

    static const unsigned features = mg_init_library(0);
    (void)features;
    const char* options[] = {"listening_ports",    listen.c_str(),        "num_threads", kThreads,
                             "request_timeout_ms", kRequestTimeoutMillis, nullptr};
    mg_callbacks callbacks = {};
    callbacks.begin_request = &CivetHttpServer::Answer;
    callbacks.log_message = [](const mg_connection*, const char*) { return 1; };  // Not on standard error.
    context_ = mg_start(&callbacks, this, options);
    mg_server_port bound[1] = {};
    if (context_ == nullptr || mg_get_server_ports(context_, 1, bound) < 1) {
      return absl::UnavailableError(absl::StrCat("cannot listen on ", address));
    }
    port_ = bound[0].port;
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
  static int Answer(mg_connection* connection) {
    const mg_request_info& request = *mg_get_request_info(connection);
    auto* server = static_cast<CivetHttpServer*>(request.user_data);
    const Response response = server->Respond(request);
    mg_printf(connection,
              "HTTP/1.1 %d %s\r\nContent-Type: %s\r\nContent-Length: %zu\r\nCache-Control: no-store\r\n%s"
              "Connection: close\r\n\r\n",
              response.status, mg_get_response_code_text(connection, response.status), response.content_type.c_str(),
              response.body.size(), response.status == 405 ? "Allow: GET\r\n" : "");
    mg_write(connection, response.body.data(), response.body.size());
    return 1;  // Handled, whatever it was: no file is ever served.
  }

  Response Respond(const mg_request_info& request) ABSL_LOCKS_EXCLUDED(mu_) {
    if (std::strcmp(request.request_method, "GET") != 0) return {405, "text/plain", "only GET is served here\n"};
    Handler handler;
    {
      absl::MutexLock lock(&mu_);
      const auto found = request.local_uri == nullptr ? handlers_.end() : handlers_.find(request.local_uri);
      if (found != handlers_.end()) handler = found->second;
    }
    if (!handler) return {404, "text/plain", "no such page\n"};
    return handler();
  }

  mg_context* context_ = nullptr;
  std::string host_ = "0.0.0.0";
  int port_ = 0;
  absl::Mutex mu_;
  std::map<std::string, Handler> handlers_ ABSL_GUARDED_BY(mu_);
};

}  // namespace

absl::StatusOr<std::unique_ptr<HttpServer>> HttpServer::Listen(const std::string& address) {
  auto server = std::make_unique<CivetHttpServer>();
  if (absl::Status status = server->Start(address); !status.ok()) return status;
  return server;
}

}  // namespace skein
