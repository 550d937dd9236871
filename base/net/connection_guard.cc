// SPDX-License-Identifier: Apache-2.0
#include "base/net/connection_guard.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"

namespace skein {
namespace {

// Fewer bytes hold no more than about 20 calls.
constexpr uint64_t kFewBytes = 512;

uint64_t BytesReceived(int socket) {
  tcp_info info = {};
  socklen_t size = sizeof(info);
  if (getsockopt(socket, IPPROTO_TCP, TCP_INFO, &info, &size) != 0) return 0;
  return info.tcpi_bytes_received;
}

std::string Readable(const std::string& address) {
  char text[INET6_ADDRSTRLEN] = "";
  inet_ntop(address.size() == 4 ? AF_INET : AF_INET6, address.data(), text, sizeof(text));
  return text;
}

}  // namespace

std::optional<uint64_t> CookieOf(int socket) {
  uint64_t cookie = 0;
  socklen_t size = sizeof(cookie);
  if (getsockopt(socket, SOL_SOCKET, SO_COOKIE, &cookie, &size) != 0) return std::nullopt;
  return cookie;
}

bool Disconnect(int socket, uint64_t cookie) {
  // The copy stays the same socket, even if gRPC closes the file between the comparison and the end.
  const int held = fcntl(socket, F_DUPFD_CLOEXEC, 0);
  if (held < 0) return false;
  const bool same = CookieOf(held) == cookie;
  if (same) {
    sockaddr nobody = {};
    nobody.sa_family = AF_UNSPEC;
    if (connect(held, &nobody, sizeof(nobody)) != 0) shutdown(held, SHUT_RDWR);
  }
  close(held);
  return same;
}

ConnectionGuard::ConnectionGuard() : ConnectionGuard(Options()) {}

ConnectionGuard::ConnectionGuard(const Options& options) : options_(options) {}

void ConnectionGuard::Add(int socket, absl::Duration now) {
  const auto name = NameOfConnection(socket);
  const auto cookie = CookieOf(socket);
  if (!name.has_value() || !cookie.has_value()) return;
  connections_[socket] = {*cookie, *name, 0, 0, options_.resets, now, 0, 0};
  next_ = std::min(next_, now + options_.busy_period);
}

int ConnectionGuard::TimeoutMillis(absl::Duration now) const {
  if (connections_.empty()) return -1;
  return static_cast<int>(absl::ToInt64Milliseconds(std::max(next_ - now, absl::ZeroDuration()))) + 1;
}

const char* ConnectionGuard::Offence(Connection* connection, uint64_t received, absl::Duration now) {
  const auto counts = counts_.Of(connection->name);
  if (!counts.has_value()) return nullptr;
  const double gained = absl::ToDoubleSeconds(now - connection->filled) * options_.resets_per_second;
  const auto resets = static_cast<double>(counts->reset - connection->resets_seen);
  connection->resets_left = std::min(options_.resets, connection->resets_left + gained) - resets;
  connection->filled = now;
  connection->resets_seen = counts->reset;
  if (connection->resets_left < 0 || counts->alive() > options_.alive) return "made calls and reset them at once";

  const int64_t calls_and_messages = counts->started + counts->messages;
  if (std::exchange(connection->calls_and_messages, calls_and_messages) != calls_and_messages) {
    connection->useful_bytes = received;
  }
  const uint64_t allowed = options_.useless_bytes + (counts->alive() > 0 ? 2 * options_.message_bytes : 0);
  return received - connection->useful_bytes > allowed ? "sent bytes without end and neither calls nor messages"
                                                       : nullptr;
}

std::vector<std::string> ConnectionGuard::Look(absl::Duration now) {
  std::vector<std::string> ended;
  if (now < next_) return ended;
  bool busy = false;
  for (auto it = connections_.begin(); it != connections_.end();) {
    const int socket = it->first;
    Connection& connection = it->second;
    if (CookieOf(socket) != connection.cookie) {  // gRPC has closed it.
      it = connections_.erase(it);
      continue;
    }
    const uint64_t received = BytesReceived(socket);
    const bool silent = received - connection.bytes_received < kFewBytes;
    busy = busy || !silent;
    const char* const offence = silent ? nullptr : Offence(&connection, received, now);
    if (offence == nullptr) {
      if (!silent) connection.bytes_received = received;
      ++it;
      continue;
    }
    if (!Disconnect(socket, connection.cookie)) {
      it = connections_.erase(it);
      continue;
    }
    const ConnectionName& name = connection.name;
    log_.Warn(absl::StrCat("port ", name.local_port, ": ended a connection from ", Readable(name.peer_address),
                           " that ", offence));
    ended.push_back(name.peer_address);
    it = connections_.erase(it);
  }
  next_ = now + std::max(busy ? options_.busy_period : options_.period,
                         static_cast<double>(connections_.size()) * options_.period_per_connection);
  return ended;
}

}  // namespace skein
