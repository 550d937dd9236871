// SPDX-License-Identifier: Apache-2.0
#include "tests/testing/fault_proxy.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <deque>
#include <iostream>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/net/host_port.h"
#include "base/process/clock.h"

namespace skein {
namespace {

constexpr size_t kReadAhead = 64 << 10;
constexpr absl::Duration kBurst = absl::Milliseconds(50);  // Of a rate, as much as this brings may come at once.
constexpr absl::Duration kForever = absl::InfiniteDuration();

int ConnectUpstream(const std::string& upstream) {
  const auto parsed = ParseHostPort(upstream);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  if (!parsed.ok() || inet_pton(AF_INET, parsed->host.c_str(), &address.sin_addr) != 1) return -1;
  address.sin_port = htons(static_cast<uint16_t>(parsed->port));
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd >= 0 && connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof(address)) != 0) {
    close(fd);
    return -1;
  }
  return fd;
}

// Not an orderly end: the other side sees a reset.
void CloseHard(int fd) {
  if (fd < 0) return;
  const linger hard{1, 0};
  setsockopt(fd, SOL_SOCKET, SO_LINGER, &hard, sizeof(hard));
  close(fd);
}

void SetNoDelay(int fd) {
  const int on = 1;
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
}

}  // namespace

// One direction of a connection.
struct FaultProxy::Pipe {
  struct Chunk {
    absl::Duration due;
    std::string bytes;
  };
  std::deque<Chunk> chunks;
  size_t buffered = 0;
  bool ended = false;                             // Its source has sent all.
  bool passed = false;                            // Its sink has been told so, or never will be.
  absl::Duration free_at = absl::ZeroDuration();  // When the rate allows the next byte.

  bool WantsToRead(const Faults& faults) const { return !ended && (faults.swallow || buffered < kReadAhead); }
  // When something can be written; kForever: there is nothing.
  absl::Duration WritableAt() const { return chunks.empty() ? kForever : std::max(chunks.front().due, free_at); }

  // False: the source is broken.
  bool Read(int from, const Faults& faults, absl::Duration now, bool* holed) {
    char data[16 << 10];
    const ssize_t size = recv(from, data, sizeof(data), MSG_DONTWAIT);
    if (size < 0) return errno == EAGAIN || errno == EINTR;
    if (size == 0) {
      ended = true;
      passed = faults.swallow;
    } else if (faults.swallow) {
      *holed = true;
    } else {
      chunks.push_back({now + faults.delay, std::string(data, static_cast<size_t>(size))});
      buffered += static_cast<size_t>(size);
    }
    return true;
  }

  // False: the sink is broken. *written grows.
  bool Write(int to, const Faults& faults, absl::Duration now, uint64_t* written) {
    while (WritableAt() <= now) {
      Chunk& chunk = chunks.front();
      size_t size = chunk.bytes.size();
      if (faults.bytes_per_second > 0) {
        free_at = std::max(free_at, now - kBurst);
        const double room = absl::ToDoubleSeconds(now - free_at) * static_cast<double>(faults.bytes_per_second);
        size = std::clamp<size_t>(static_cast<size_t>(room), 1, size);
      }
      const ssize_t sent = send(to, chunk.bytes.data(), size, MSG_DONTWAIT | MSG_NOSIGNAL);
      if (sent < 0) return errno == EAGAIN || errno == EINTR;
      *written += static_cast<uint64_t>(sent);
      buffered -= static_cast<size_t>(sent);
      if (faults.bytes_per_second > 0) {
        free_at += absl::Seconds(static_cast<double>(sent) / static_cast<double>(faults.bytes_per_second));
      }
      chunk.bytes.erase(0, static_cast<size_t>(sent));
      if (chunk.bytes.empty()) chunks.pop_front();
    }
    return true;
  }

  void PassEnd(int to) {
    if (!ended || passed || !chunks.empty()) return;
    shutdown(to, SHUT_WR);
    passed = true;
  }
};

struct FaultProxy::Connection {
  Connection(int client_fd, int server_fd) : client(client_fd), server(server_fd) {}
  ~Connection() {
    CloseHard(client);
    CloseHard(server);
  }
  // Closes the side `fd` in order and forgets it.
  static void CloseSide(int* fd) {
    if (*fd >= 0) close(*fd);
    *fd = -1;
  }

  int client, server;  // -1: that side broke while what it says is swallowed.
  Pipe to_server, to_client;
  bool holed = false;  // It has lost bytes.
  bool dead = false;
};

FaultProxy::FaultProxy(std::string upstream) : upstream_(std::move(upstream)) {
  listener_ = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  wake_ = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof(address);
  if (bind(listener_, reinterpret_cast<sockaddr*>(&address), size) != 0 || listen(listener_, 64) != 0 ||
      getsockname(listener_, reinterpret_cast<sockaddr*>(&address), &size) != 0 || wake_ < 0) {
    std::cerr << "fault proxy: no port" << std::endl;
    std::abort();
  }
  address_ = absl::StrCat("127.0.0.1:", ntohs(address.sin_port));
  thread_ = std::thread([this] { Run(); });
}

FaultProxy::~FaultProxy() {
  {
    absl::MutexLock lock(&mu_);
    stop_ = true;
  }
  Wake();
  thread_.join();
  close(listener_);
  close(wake_);
}

void FaultProxy::Wake() {
  const uint64_t one = 1;
  [[maybe_unused]] const ssize_t written = write(wake_, &one, sizeof(one));
}

void FaultProxy::AwaitChange() {
  int change;
  {
    absl::MutexLock lock(&mu_);
    change = ++changes_;
  }
  Wake();
  absl::MutexLock lock(&mu_);
  const auto adopted = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) { return adopted_ >= change; };
  mu_.Await(absl::Condition(&adopted));
}

void FaultProxy::Change(Direction direction, void (*change)(Faults*, int64_t), int64_t value) {
  {
    absl::MutexLock lock(&mu_);
    if (direction != Direction::kToClient) change(&to_server_, value);
    if (direction != Direction::kToServer) change(&to_client_, value);
  }
  AwaitChange();
}

void FaultProxy::SetUpstream(const std::string& upstream) {
  absl::MutexLock lock(&mu_);
  upstream_ = upstream;
}

void FaultProxy::Delay(Direction direction, absl::Duration delay) {
  Change(
      direction, [](Faults* faults, int64_t value) { faults->delay = absl::Nanoseconds(value); },
      absl::ToInt64Nanoseconds(delay));
}

void FaultProxy::LimitRate(Direction direction, uint64_t bytes_per_second) {
  Change(
      direction, [](Faults* faults, int64_t value) { faults->bytes_per_second = static_cast<uint64_t>(value); },
      static_cast<int64_t>(bytes_per_second));
}

void FaultProxy::Swallow(Direction direction) {
  Change(
      direction, [](Faults* faults, int64_t) { faults->swallow = true; }, 0);
}

void FaultProxy::Refuse() {
  {
    absl::MutexLock lock(&mu_);
    refuse_ = true;
  }
  AwaitChange();
}

void FaultProxy::Cut() {
  {
    absl::MutexLock lock(&mu_);
    reset_ = Reset::kAll;
  }
  AwaitChange();
}

void FaultProxy::Heal() {
  {
    absl::MutexLock lock(&mu_);
    to_server_ = to_client_ = Faults();
    refuse_ = false;
    if (reset_ == Reset::kNone) reset_ = Reset::kHoled;
  }
  AwaitChange();
}

int FaultProxy::open_connections() const {
  absl::MutexLock lock(&mu_);
  return open_connections_;
}

int FaultProxy::connections() const { return static_cast<int>(connection_times().size()); }

std::vector<absl::Duration> FaultProxy::connection_times() const {
  absl::MutexLock lock(&mu_);
  return connection_times_;
}

uint64_t FaultProxy::bytes_to_server() const {
  absl::MutexLock lock(&mu_);
  return bytes_to_server_;
}

void FaultProxy::Accept(bool refuse) {
  const int client = accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
  if (client < 0) return;
  std::string upstream;
  {
    absl::MutexLock lock(&mu_);
    connection_times_.push_back(MonotonicNow());
    upstream = upstream_;
  }
  const int server = refuse ? -1 : ConnectUpstream(upstream);
  if (server < 0) {
    CloseHard(client);
    return;
  }
  SetNoDelay(client);
  SetNoDelay(server);
  open_[++last_connection_] = std::make_unique<Connection>(client, server);
}

void FaultProxy::Run() {
  uint64_t written = 0;
  while (true) {
    Faults to_server, to_client;
    bool refuse;
    {
      absl::MutexLock lock(&mu_);
      if (stop_) break;
      adopted_ = changes_;
      to_server = to_server_;
      to_client = to_client_;
      refuse = refuse_;
      const Reset reset = std::exchange(reset_, Reset::kNone);
      for (auto it = open_.begin(); it != open_.end();) {
        const Connection& c = *it->second;
        const bool over = c.to_server.passed && c.to_client.passed && !to_server.swallow && !to_client.swallow;
        const bool gone = c.dead || over || reset == Reset::kAll || (reset == Reset::kHoled && c.holed);
        if (over && !c.holed) {  // Both have said all: an orderly end.
          Connection::CloseSide(&it->second->client);
          Connection::CloseSide(&it->second->server);
        }
        it = gone ? open_.erase(it) : std::next(it);
      }
      open_connections_ = static_cast<int>(open_.size());
      bytes_to_server_ = written;
    }
    absl::Duration now = MonotonicNow(), next = now + absl::Seconds(1);
    std::vector<pollfd> fds = {{wake_, POLLIN, 0}, {listener_, POLLIN, 0}};
    for (const auto& [number, c] : open_) {
      const auto events = [&](const Pipe& in, const Faults& faults, const Pipe& out) {
        if (out.WritableAt() > now) next = std::min(next, out.WritableAt());
        return static_cast<short>((in.WantsToRead(faults) ? POLLIN : 0) | (out.WritableAt() <= now ? POLLOUT : 0));
      };
      const short of_client = events(c->to_server, to_server, c->to_client);
      const short of_server = events(c->to_client, to_client, c->to_server);
      // A side that nothing is wanted of is not asked: it would answer that it has ended again and again.
      fds.push_back({of_client == 0 ? -1 : c->client, of_client, 0});
      fds.push_back({of_server == 0 ? -1 : c->server, of_server, 0});
    }
    poll(fds.data(), fds.size(), static_cast<int>(absl::ToInt64Milliseconds(next - now)) + 1);
    now = MonotonicNow();
    uint64_t woken;
    [[maybe_unused]] const ssize_t size = read(wake_, &woken, sizeof(woken));
    size_t at = 2;
    for (const auto& [number, c] : open_) {
      uint64_t to_nobody = 0;
      const auto serve = [&](const pollfd& fd, int* own, Pipe* in, const Faults& faults, Pipe* out,
                             const Faults& out_faults, uint64_t* count) {
        if (fd.fd < 0 || fd.revents == 0) return;
        bool whole = true;
        if ((fd.events & POLLIN) != 0) whole = in->Read(*own, faults, now, &c->holed);
        if (whole && (fd.events & POLLOUT) != 0) whole = out->Write(*own, out_faults, now, count);
        if (whole) return;
        if (!faults.swallow) {
          c->dead = true;
          return;
        }
        // Its end is swallowed too: the other side goes on as if nothing had happened.
        CloseHard(std::exchange(*own, -1));
        in->ended = in->passed = c->holed = true;
      };
      serve(fds[at], &c->client, &c->to_server, to_server, &c->to_client, to_client, &to_nobody);
      serve(fds[at + 1], &c->server, &c->to_client, to_client, &c->to_server, to_server, &written);
      at += 2;
      if (c->server >= 0) c->to_server.PassEnd(c->server);
      if (c->client >= 0) c->to_client.PassEnd(c->client);
    }
    if ((fds[1].revents & POLLIN) != 0) Accept(refuse);
  }
  open_.clear();
}

}  // namespace skein
