// SPDX-License-Identifier: Apache-2.0
#include "base/net/connection_guard.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <linux/sockios.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "absl/strings/str_cat.h"

namespace skein {
namespace {

// Fewer bytes hold no more than about 20 calls.
constexpr int64_t kFewBytes = 512;
// A TLS handshake and a few calls.
constexpr int64_t kLittleBytes = 8 << 10;

struct Bytes {
  int64_t received = 0;  // By the kernel.
  int64_t read = 0;      // By gRPC; too few if more come meanwhile.
};

Bytes BytesOf(int socket) {
  tcp_info info = {};
  socklen_t size = sizeof(info);
  int waiting = 0;
  if (getsockopt(socket, IPPROTO_TCP, TCP_INFO, &info, &size) != 0 || ioctl(socket, SIOCINQ, &waiting) != 0) return {};
  const auto received = static_cast<int64_t>(info.tcpi_bytes_received);
  return {received, received - waiting};
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

bool ConnectionGuard::Add(int socket, absl::Duration now) {
  const auto name = NameOfConnection(socket);
  const auto cookie = CookieOf(socket);
  if (!name.has_value() || !cookie.has_value()) return false;
  if (const auto before = connections_.find(socket); before != connections_.end() && before->second.is_new) {
    replaced_.push_back(before->second.name.peer_address);
  }
  connections_[socket] = {
      .cookie = *cookie, .name = *name, .added = now, .resets_left = options_.resets, .filled = now};
  next_ = std::min(next_, now + options_.busy_period);
  return true;
}

int ConnectionGuard::TimeoutMillis(absl::Duration now) const {
  if (connections_.empty()) return -1;
  return static_cast<int>(absl::ToInt64Milliseconds(std::max(next_ - now, absl::ZeroDuration()))) + 1;
}

const char* ConnectionGuard::Offence(Connection* connection, const Counts& counts, int64_t read,
                                     absl::Duration now) const {
  if (!counts.has_value()) return nullptr;
  const double gained = absl::ToDoubleSeconds(now - connection->filled) * options_.resets_per_second;
  const auto resets = static_cast<double>(counts->reset - connection->resets_seen);
  connection->resets_left = std::min(options_.resets, connection->resets_left + gained) - resets;
  connection->filled = now;
  connection->resets_seen = counts->reset;
  if (connection->resets_left < 0 || counts->alive() > options_.alive) return "made calls and reset them at once";

  const int64_t calls_and_messages = counts->started + counts->messages;
  if (std::exchange(connection->calls_and_messages, calls_and_messages) != calls_and_messages) {
    connection->useful_bytes = read;
  }
  const int64_t allowed = options_.useless_bytes + (counts->alive() > 0 ? 2 * options_.message_bytes : 0);
  return read - connection->useful_bytes > allowed ? "sent bytes without end and neither calls nor messages" : nullptr;
}

bool ConnectionGuard::IsSettled(const Connection& connection, const Counts& counts, int64_t received,
                                absl::Duration now) const {
  const absl::Duration age = now - connection.added;
  if (age < options_.new_at_least) return false;
  if (age > options_.new_at_most) return true;
  if (connection.ended) return false;
  if (received < kLittleBytes) return true;
  return counts.has_value() && counts->started > 0 && counts->alive() <= options_.open;
}

ConnectionGuard::Found ConnectionGuard::Look(absl::Duration now) {
  Found found;
  if (now < next_) return found;
  found.settled.swap(replaced_);
  bool busy = false;
  for (auto it = connections_.begin(); it != connections_.end();) {
    const int socket = it->first;
    Connection& connection = it->second;
    const std::string& address = connection.name.peer_address;
    const bool gone = CookieOf(socket) != connection.cookie;  // gRPC has closed it.
    const bool over = gone || connection.ended;
    // What waits in the kernel is no call yet: on a busy machine gRPC reads it later, when none comes.
    const auto [received, read] = over ? Bytes{} : BytesOf(socket);
    const bool silent = over || read - connection.bytes_read < kFewBytes;
    const bool ask = !over && (!silent || (connection.is_new && received >= kLittleBytes));
    const Counts counts = ask ? counts_.Of(connection.name) : std::nullopt;
    const char* const offence = ask ? Offence(&connection, counts, read, now) : nullptr;
    if (offence != nullptr && Disconnect(socket, connection.cookie)) {
      log_.Warn(absl::StrCat("port ", connection.name.local_port, ": ended a connection from ", Readable(address),
                             " that ", offence));
      found.ended.push_back(address);
      connection.ended = true;
    }
    if (connection.is_new && (gone || IsSettled(connection, counts, received, now))) {
      connection.is_new = false;
      found.settled.push_back(address);
    }
    busy = busy || !silent || connection.is_new;
    if (!silent) connection.bytes_read = read;
    it = gone ? connections_.erase(it) : std::next(it);
  }
  next_ = now + std::max(busy ? options_.busy_period : options_.period,
                         static_cast<double>(connections_.size()) * options_.period_per_connection);
  return found;
}

}  // namespace skein
