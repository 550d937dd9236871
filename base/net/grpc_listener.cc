// SPDX-License-Identifier: Apache-2.0
#include "base/net/grpc_listener.h"

#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/net/connection_guard.h"
#include "base/net/grpc_credentials.h"
#include "base/net/new_connections.h"
#include "base/process/clock.h"
#include "grpcpp/impl/server_builder_option.h"
#include "grpcpp/impl/server_builder_plugin.h"
#include "grpcpp/impl/server_initializer.h"
#include "grpcpp/impl/service_type.h"

namespace skein {
namespace {

// More than there are members in any run. Numbers of files are given from the lowest up: a connection with a higher
// number is one too many.
constexpr int kMostConnections = 32'000;
constexpr int kSpareFiles = 64;  // For logs, checkpoints, other sockets.
constexpr int kUnsentTimeoutMillis = 5'000;
constexpr int kOutOfFilesMillis = 100;

// The earlier of two timeouts of poll(); -1 is none.
int Sooner(int one, int other) { return one < 0 || other < 0 ? std::max(one, other) : std::min(one, other); }

// Takes as many files as the system lets this process have; how many connections that is.
int MostFiles() {
  rlimit files;
  if (getrlimit(RLIMIT_NOFILE, &files) != 0) return kMostConnections;
  if (files.rlim_cur != files.rlim_max) {
    files.rlim_cur = files.rlim_max;
    setrlimit(RLIMIT_NOFILE, &files);
    getrlimit(RLIMIT_NOFILE, &files);
  }
  const auto limit = static_cast<int>(std::min<rlim_t>(files.rlim_cur, kMostConnections + kSpareFiles));
  return std::max(limit - kSpareFiles, limit / 2);
}

// A socket that listens there, or -1 and errno.
int ListenOn(const addrinfo& address, int unread_bytes) {
  const int fd = socket(address.ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (fd < 0) return -1;
  const int on = 1, off = 0;
  setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
  if (address.ai_family == AF_INET6) setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof(off));
  // Accepted sockets have these too.
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
  setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &kUnsentTimeoutMillis, sizeof(kUnsentTimeoutMillis));
  if (unread_bytes > 0) setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &unread_bytes, sizeof(unread_bytes));
  if (bind(fd, address.ai_addr, address.ai_addrlen) == 0 && listen(fd, SOMAXCONN) == 0) return fd;
  const int error = errno;
  close(fd);
  errno = error;
  return -1;
}

int PortOf(int fd) {
  sockaddr_storage address = {};
  socklen_t size = sizeof(address);
  if (getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size) != 0) return 0;
  return ntohs(address.ss_family == AF_INET6 ? reinterpret_cast<sockaddr_in6*>(&address)->sin6_port
                                             : reinterpret_cast<sockaddr_in*>(&address)->sin_port);
}

void SetPort(sockaddr* address, int port) {
  const auto in_order = htons(static_cast<uint16_t>(port));
  if (address->sa_family == AF_INET6) {
    reinterpret_cast<sockaddr_in6*>(address)->sin6_port = in_order;
  } else {
    reinterpret_cast<sockaddr_in*>(address)->sin_port = in_order;
  }
}

// A service without calls that a server owns, and with it something else.
class Keeper final : public grpc::Service {
 public:
  explicit Keeper(std::shared_ptr<GrpcListener> kept) : kept_(std::move(kept)) {}

 private:
  const std::shared_ptr<GrpcListener> kept_;
};

class KeeperPlugin final : public grpc::ServerBuilderPlugin {
 public:
  explicit KeeperPlugin(std::shared_ptr<GrpcListener> kept) : kept_(std::move(kept)) {}
  std::string name() override { return "skein.listener"; }
  void InitServer(grpc::ServerInitializer* server) override {
    server->RegisterService(std::make_shared<Keeper>(std::move(kept_)));
  }
  void Finish(grpc::ServerInitializer*) override {}
  void ChangeArguments(const std::string&, void*) override {}

 private:
  std::shared_ptr<GrpcListener> kept_;
};

class KeeperOption final : public grpc::ServerBuilderOption {
 public:
  explicit KeeperOption(std::shared_ptr<GrpcListener> kept) : kept_(std::move(kept)) {}
  void UpdateArguments(grpc::ChannelArguments*) override {}
  void UpdatePlugins(std::vector<std::unique_ptr<grpc::ServerBuilderPlugin>>* plugins) override {
    plugins->push_back(std::make_unique<KeeperPlugin>(std::move(kept_)));
  }

 private:
  std::shared_ptr<GrpcListener> kept_;
};

}  // namespace

absl::StatusOr<std::shared_ptr<GrpcListener>> GrpcListener::Listen(const HostPort& address, bool tls,
                                                                   const ServerLimits& limits) {
  // Says what is wrong with it.
  if (absl::Status can_listen = CheckCanListen(address); !can_listen.ok()) return can_listen;
  const std::string name = JoinHostPort(address.host, address.port);
  addrinfo hints = {};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_PASSIVE | AI_NUMERICSERV;
  addrinfo* found = nullptr;
  const std::string port = std::to_string(address.port);
  if (const int code = getaddrinfo(address.host.empty() ? "::" : address.host.c_str(), port.c_str(), &hints, &found);
      code != 0) {
    return absl::UnavailableError(absl::StrCat("cannot listen on ", name, ": ", gai_strerror(code)));
  }
  const std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> owner(found, &freeaddrinfo);

  std::shared_ptr<GrpcListener> listener(new GrpcListener);
  int error = 0;
  for (const addrinfo* one = found; one != nullptr; one = one->ai_next) {
    SetPort(one->ai_addr, address.port == 0 ? listener->port_ : address.port);
    const int fd = ListenOn(*one, limits.unread_bytes);
    if (fd < 0) {
      error = errno;
      continue;
    }
    listener->sockets_.push_back(fd);
    listener->port_ = PortOf(fd);
  }
  if (listener->sockets_.empty() && address.host.empty()) {
    return Listen({"0.0.0.0", address.port}, tls, limits);
  }  // No IPv6.
  if (listener->sockets_.empty()) {
    return absl::UnavailableError(absl::StrCat("cannot listen on ", name, ": ", strerror(error)));
  }
  listener->tls_ = tls;
  listener->message_bytes_ = limits.message_bytes;
  listener->most_files_ = MostFiles();
  listener->stop_ = eventfd(0, EFD_CLOEXEC);
  return listener;
}

GrpcListener::~GrpcListener() {
  if (handover_ != nullptr) handover_->Stop();
  const uint64_t one = 1;
  if (thread_.joinable() && write(stop_, &one, sizeof(one)) == sizeof(one)) thread_.join();
  for (const int fd : sockets_) close(fd);
  if (stop_ >= 0) close(stop_);
}

void GrpcListener::AddTo(grpc::ServerBuilder* builder, std::shared_ptr<grpc::ServerCredentials> credentials,
                         std::shared_ptr<GrpcListener> listener) {
  listener->acceptor_ = builder->experimental().AddExternalConnectionAcceptor(
      grpc::ServerBuilder::experimental_type::ExternalConnectionType::FROM_FD, std::move(credentials));
  builder->SetOption(std::make_unique<KeeperOption>(std::move(listener)));
}

void GrpcListener::Start() {
  handover_ = std::make_unique<Handover>([this](const AcceptedConnection& one) { return GiveToServer(one); });
  thread_ = std::thread([this] { AcceptAll(); });
}

void GrpcListener::AcceptAll() {
  ConnectionGuard guard({.message_bytes = message_bytes_});
  HeldConnections held;
  NewConnections new_connections;
  const auto settle = [&](const std::string& address) {
    // Whose peer has gone already makes room for the next at once.
    for (auto next = new_connections.Settle(address); next.has_value(); next = new_connections.Settle(address)) {
      const bool watched = guard.Add(next->socket, MonotonicNow());
      handover_->Add(*next);
      if (watched) return;
    }
  };
  FirstBytes first_bytes({.port = port_, .tls = tls_}, [&](int listener, int socket) {
    const auto name = NameOfConnection(socket);
    if (name.has_value() && !new_connections.Enter({listener, socket}, name->peer_address)) return;
    const bool watched = guard.Add(socket, MonotonicNow());
    handover_->Add({listener, socket});
    if (name.has_value() && !watched) settle(name->peer_address);
  });
  std::vector<pollfd> polled;
  while (true) {
    polled.assign(1, {stop_, POLLIN, 0});
    for (const int fd : sockets_) polled.push_back({fd, POLLIN, 0});
    first_bytes.AppendTo(&polled);
    const absl::Duration begin = MonotonicNow();
    const int timeout =
        Sooner(guard.TimeoutMillis(begin), Sooner(first_bytes.TimeoutMillis(begin), held.TimeoutMillis(begin)));
    if (poll(polled.data(), polled.size(), timeout) < 0) continue;  // Interrupted.
    if (polled[0].revents != 0) return;
    first_bytes.Serve(polled.data() + 1 + sockets_.size(), MonotonicNow());
    const ConnectionGuard::Found found = guard.Look(MonotonicNow());
    for (const std::string& address : found.ended) {
      held.Penalize(address, MonotonicNow());
      for (const AcceptedConnection& one : new_connections.TakeWaiting(address)) {
        if (!held.Hold(one, address, MonotonicNow())) close(one.socket);
      }
    }
    for (const std::string& address : found.settled) settle(address);
    for (const AcceptedConnection& one : held.TakeDue(MonotonicNow())) {
      first_bytes.Add(one.listener, one.socket, MonotonicNow());
    }
    bool any = true;
    for (size_t i = 0; i < sockets_.size(); ++i) {
      if (polled[1 + i].revents != 0) any = AcceptOne(sockets_[i], &first_bytes, &held) && any;
    }
    if (!any) poll(polled.data(), 1, kOutOfFilesMillis);
  }
}

bool GrpcListener::AcceptOne(int listener, FirstBytes* first_bytes, HeldConnections* held) {
  const int fd = accept4(listener, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
  if (fd < 0) return errno != EMFILE && errno != ENFILE && errno != ENOBUFS && errno != ENOMEM;
  if (fd >= most_files_) {
    close(fd);
    too_many_.Warn(absl::StrCat("port ", port_, ": more than ", most_files_, " connections, closed one"));
    return true;
  }
  const auto name = NameOfConnection(fd);
  const absl::Duration now = MonotonicNow();
  if (name.has_value() && held->Hold({listener, fd}, name->peer_address, now)) return true;
  first_bytes->Add(listener, fd, now);
  return true;
}

bool GrpcListener::GiveToServer(const AcceptedConnection& connection) {
  grpc::experimental::ExternalConnectionAcceptor::NewConnectionParameters parameters;
  parameters.listener_fd = connection.listener;
  parameters.fd = connection.socket;
  acceptor_->HandleNewConnection(&parameters);
  return !TookNoConnection();
}

}  // namespace skein
