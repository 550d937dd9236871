// SPDX-License-Identifier: Apache-2.0
#include "base/net/http_server.h"

#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <deque>
#include <map>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "absl/synchronization/notification.h"
#include "absl/time/time.h"
#include "base/net/call_authorization.h"
#include "base/net/host_port.h"
#include "base/net/timed_socket.h"
#include "base/net/tls_pem.h"
#include "base/process/clock.h"
#include "base/telemetry/rare_log.h"
#include "httplib.h"
#include "openssl/ssl.h"
#include "prometheus/text_serializer.h"

namespace skein {
namespace {

// Threads are made as they are needed, and stay.
constexpr size_t kMostHttpConnections = 32;
constexpr size_t kMostRequestBytes = size_t{64} << 10;
constexpr absl::Duration kRequestTime = absl::Seconds(5);
constexpr absl::Duration kAnswerTime = absl::Seconds(10);

// The connections that are served at a time. No client can hold the others up by being slow: where one comes too many,
// the oldest is ended.
class ConnectionQueue final : public httplib::TaskQueue {
 public:
  // On the library's thread, which accepts connections.
  void enqueue(std::function<void()> serve) override ABSL_LOCKS_EXCLUDED(mu_) {
    absl::MutexLock lock(&mu_);
    waiting_.push_back(std::move(serve));
    if (waiting_.size() > idle_ && threads_.size() < kMostHttpConnections) {
      ++idle_;
      threads_.emplace_back([this] { Run(); });
    }
    MakeRoom();
  }

  // On the same thread, once. Requests that are not here yet come too late; answers are given.
  void shutdown() override ABSL_LOCKS_EXCLUDED(mu_) {
    {
      absl::MutexLock lock(&mu_);
      stopping_ = true;
      for (const int descriptor : served_) ::shutdown(descriptor, SHUT_RD);
    }
    for (std::thread& thread : threads_) thread.join();
  }

  // Around the service of a connection, before it is closed.
  void Begin(int descriptor) ABSL_LOCKS_EXCLUDED(mu_) {
    absl::MutexLock lock(&mu_);
    served_.push_back(descriptor);
    if (stopping_) ::shutdown(descriptor, SHUT_RD);
    MakeRoom();
  }
  void End(int descriptor) ABSL_LOCKS_EXCLUDED(mu_) {
    absl::MutexLock lock(&mu_);
    const auto found = std::find(served_.begin(), served_.end(), descriptor);
    if (found == served_.end()) return;
    served_.erase(found);
    ++ending_;
  }

 private:
  void Run() ABSL_LOCKS_EXCLUDED(mu_) {
    while (true) {
      std::function<void()> serve;
      {
        absl::MutexLock lock(&mu_);
        mu_.Await(absl::Condition(this, &ConnectionQueue::HasWork));
        if (waiting_.empty()) return;
        --idle_;
        serve = std::move(waiting_.front());
        waiting_.pop_front();
      }
      serve();
      absl::MutexLock lock(&mu_);
      --ending_;
      ++idle_;
    }
  }
  bool HasWork() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) { return stopping_ || !waiting_.empty(); }
  // Ends as many as wait for a thread and will get none by themselves.
  void MakeRoom() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    for (; waiting_.size() > idle_ + ending_ && !served_.empty(); served_.pop_front(), ++ending_) {
      ::shutdown(served_.front(), SHUT_RDWR);
    }
  }

  std::vector<std::thread> threads_;  // Of the library's thread.
  absl::Mutex mu_;
  std::deque<std::function<void()>> waiting_ ABSL_GUARDED_BY(mu_);
  std::deque<int> served_ ABSL_GUARDED_BY(mu_);  // Oldest first, without
  size_t ending_ ABSL_GUARDED_BY(mu_) = 0;       // those that end and whose threads are not idle yet.
  size_t idle_ ABSL_GUARDED_BY(mu_) = 0;         // Threads that serve none.
  bool stopping_ ABSL_GUARDED_BY(mu_) = false;
};

// A TimedSocket as the library reads and writes.
class RequestStream final : public httplib::Stream {
 public:
  explicit RequestStream(TimedSocket* socket) : socket_(socket) {}

  bool is_readable() const override { return true; }  // They wait.
  bool is_writable() const override { return true; }
  ssize_t read(char* to, size_t size) override {
    if (next_ == end_) {
      if (taken_ >= kMostRequestBytes) return -1;
      const ssize_t got = socket_->Read(buffer_.data(), buffer_.size());
      if (got <= 0) return got;
      next_ = 0;
      end_ = static_cast<size_t>(got);
      taken_ += end_;
    }
    size = std::min(size, end_ - next_);
    std::copy_n(buffer_.begin() + static_cast<ptrdiff_t>(next_), size, to);
    next_ += size;
    return static_cast<ssize_t>(size);
  }
  ssize_t write(const char* from, size_t size) override {
    return socket_->Write(from, size) ? static_cast<ssize_t>(size) : -1;
  }
  // No request waits.
  void get_remote_ip_and_port(std::string&, int&) const override {}
  void get_local_ip_and_port(std::string&, int&) const override {}
  socket_t socket() const override { return INVALID_SOCKET; }

 private:
  TimedSocket* const socket_;
  std::array<char, 4096> buffer_;
  size_t next_ = 0, end_ = 0;  // Of what is in the buffer.
  size_t taken_ = 0;
};

struct FreeTlsContext {
  void operator()(SSL_CTX* context) const { SSL_CTX_free(context); }
};
using TlsContext = std::unique_ptr<SSL_CTX, FreeTlsContext>;

// The library's server, but each connection has so much time in all. The library's own timeouts are for each read and
// write: a client that sends a byte a second would keep its thread for ever.
class TimedServer final : public httplib::Server {
 public:
  // `tls`: nullptr for none. `on_stranger` is told of each connection that made no request, on its thread.
  TimedServer(TlsContext tls, std::function<void()> on_stranger)
      : tls_(std::move(tls)), on_stranger_(std::move(on_stranger)) {
    // The library makes its queue once it runs.
    new_task_queue = [this] {
      queue_ = new ConnectionQueue;
      running_.Notify();
      return queue_;
    };
  }

  // The library has it at 5: a few clients at once would make others' kernels try again after a second and more.
  // REQUIRES: it is bound.
  void RaiseBacklog() { ::listen(svr_sock_, SOMAXCONN); }
  void WaitUntilRunning() const { running_.WaitForNotification(); }

 private:
  bool process_and_close_socket(socket_t descriptor) override {
    queue_->Begin(descriptor);
    TimedSocket socket(descriptor, tls_.get(), MonotonicNow() + kRequestTime);
    bool asked = false, closed = false;
    if (socket.Open()) {
      RequestStream stream(&socket);
      process_request(stream, /*close_connection=*/true, closed, [&](httplib::Request& request) {
        asked = true;
        request.ranges.clear();  // The library would answer with each of them, however often the same is asked for.
        request.ssl = socket.ssl();
        socket.set_deadline(MonotonicNow() + kAnswerTime);
      });
    }
    if (!asked) on_stranger_();
    queue_->End(descriptor);  // Before it is closed: another may have its number then.
    return asked;
  }

  const TlsContext tls_;
  const std::function<void()> on_stranger_;
  ConnectionQueue* queue_ = nullptr;  // The library's, while it runs.
  absl::Notification running_;
};

TlsContext MakeTlsContext(const Credentials& credentials) {
  TlsContext context(SSL_CTX_new(TLS_server_method()));
  if (context != nullptr && !SetUpTlsServer(credentials, context.get())) context.reset();
  return context;
}

HttpServer::Response JsonError(int status, const std::string& text) {
  return {status, "application/json", absl::StrCat("{\"error\":\"", text, "\"}\n")};
}

// For a request whose body could not be read.
HttpServer::Response Unread(const httplib::Request& request) {
  const auto length = request.get_header_value<uint64_t>("Content-Length");
  constexpr size_t kHead = 4096;  // Lines before the body count, too.
  if (length + kHead < kMostRequestBytes) return JsonError(400, "the body of the request is not there");
  return JsonError(413, absl::StrCat("the body has ", length, " bytes; a request has ", kMostRequestBytes, " at most"));
}

bool IsHealth(const std::string& path) { return path == "/healthz" || path == "/readyz"; }

class HttplibServer : public HttpServer {
 public:
  explicit HttplibServer(const Credentials& credentials) : credentials_(credentials) {}

  ~HttplibServer() override {
    if (!listener_.joinable()) return;
    server_->WaitUntilRunning();  // Before that, stop() does nothing.
    server_->stop();
    listener_.join();  // After the server's threads, and with them all handlers.
  }

  absl::Status Start(const std::string& address) {
    if (absl::Status allowed = CheckExposure(address, credentials_); !allowed.ok()) return allowed;
    TlsContext tls;
    if (credentials_.has_tls()) {
      tls = MakeTlsContext(credentials_);
      if (tls == nullptr) return absl::InvalidArgumentError("the TLS certificate and key cannot be used for HTTPS");
    }
    const absl::StatusOr<HostPort> parsed = ParseHostPort(address);
    if (absl::Status can_listen = CheckCanListen(*parsed); !can_listen.ok()) return can_listen;
    server_ = std::make_unique<TimedServer>(std::move(tls), [this] {
      strangers_.Warn(absl::StrCat("port ", port_, ": closed a connection that made no HTTP request"));
    });
    // Not SO_REUSEPORT, which the library would set: two servers on one port must be an error.
    server_->set_socket_options([](int fd) {
      const int yes = 1;
      setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes));
    });
    server_->set_pre_routing_handler([this](const httplib::Request& request, httplib::Response& answer) {
      const bool allowed = Allows(request);
      if (allowed && FindPost(request.method, request.path)) {
        return httplib::Server::HandlerResponse::Unhandled;  // The library reads the body and comes to Post().
      }
      Answer(allowed ? Respond(request.method, request.path) : Refusal(), &answer);
      return httplib::Server::HandlerResponse::Handled;
    });
    // With a reader: of what says that it is a form, as curl's -d does, the library itself takes 8 KiB only.
    server_->Post(
        ".*", [this](const httplib::Request& request, httplib::Response& answer, const httplib::ContentReader& read) {
          const PostHandler handler = FindPost(request.method, request.path);
          std::string body;
          if (!handler) {
            Answer({404, "text/plain", "no such page\n"}, &answer);
          } else if (request.is_multipart_form_data()) {
            Answer(JsonError(415, "want JSON, got parts of a form"), &answer);
          } else if (!read([&body](const char* data, size_t size) {
                       body.append(data, size);
                       return true;
                     })) {
            Answer(Unread(request), &answer);
          } else {
            Answer(handler(body), &answer);
          }
        });
    const std::string host = parsed->host.empty() ? "0.0.0.0" : parsed->host;
    port_ = parsed->port != 0 ? parsed->port : server_->bind_to_any_port(host);
    if (port_ <= 0 || (parsed->port != 0 && !server_->bind_to_port(host, port_))) {
      return absl::UnavailableError(absl::StrCat("cannot listen on ", address));
    }
    server_->RaiseBacklog();
    listener_ = std::thread([this] { server_->listen_after_bind(); });
    return absl::OkStatus();
  }

  int port() const override { return port_; }

  void Handle(const std::string& path, Handler handler) override ABSL_LOCKS_EXCLUDED(mu_) {
    absl::MutexLock lock(&mu_);
    handlers_[path] = std::move(handler);
  }

  void HandlePost(const std::string& path, PostHandler handler) override ABSL_LOCKS_EXCLUDED(mu_) {
    absl::MutexLock lock(&mu_);
    posts_[path] = std::move(handler);
  }

  void ServeMetrics(std::shared_ptr<prometheus::Collectable> source) override {
    Handle("/metrics", [source = std::move(source)] {
      return Response{200, "text/plain; version=0.0.4; charset=utf-8",
                      prometheus::TextSerializer().Serialize(source->Collect())};
    });
  }

 private:
  static void Answer(Response response, httplib::Response* answer) {
    answer->status = response.status;
    if (response.status == 405) answer->set_header("Allow", "GET");
    if (response.status == 401) answer->set_header("WWW-Authenticate", "Basic realm=\"skein\"");
    answer->set_header("Cache-Control", "no-store");
    answer->set_content(std::move(response.body), response.content_type);
  }

  // Empty: nothing can be posted there.
  PostHandler FindPost(const std::string& method, const std::string& path) ABSL_LOCKS_EXCLUDED(mu_) {
    if (method != "POST") return nullptr;
    absl::MutexLock lock(&mu_);
    const auto found = posts_.find(path);
    return found == posts_.end() ? nullptr : found->second;
  }

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
    if (method != "GET") return {405, "text/plain", method + " is not served here\n"};
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
  RareLog strangers_;
  std::unique_ptr<TimedServer> server_;
  std::thread listener_;
  int port_ = 0;
  absl::Mutex mu_;
  std::map<std::string, Handler> handlers_ ABSL_GUARDED_BY(mu_);
  std::map<std::string, PostHandler> posts_ ABSL_GUARDED_BY(mu_);
};

}  // namespace

absl::StatusOr<std::unique_ptr<HttpServer>> HttpServer::Listen(const std::string& address,
                                                               const Credentials& credentials) {
  auto server = std::make_unique<HttplibServer>(credentials);
  if (absl::Status status = server->Start(address); !status.ok()) return status;
  return server;
}

}  // namespace skein
