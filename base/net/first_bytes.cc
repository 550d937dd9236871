// SPDX-License-Identifier: Apache-2.0
#include "base/net/first_bytes.h"

#include <netdb.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <string>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace skein {
namespace {

constexpr absl::string_view kHttp2Preface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
constexpr absl::string_view kTlsHandshake = "\x16\x03";  // A record's type, the first byte of its version.

const char* Describe(absl::string_view bytes) {
  if (absl::StartsWith(bytes, "PRI ")) return "HTTP/2 without TLS";
  if (absl::StartsWith(bytes, kTlsHandshake)) return "TLS";
  for (const char* method : {"GET ", "POST ", "HEAD ", "PUT ", "OPTIONS ", "CONNECT "}) {
    if (absl::StartsWith(bytes, method)) return "HTTP/1";
  }
  return "something else";
}

std::string PeerName(int socket) {
  sockaddr_storage address = {};
  socklen_t size = sizeof(address);
  char host[NI_MAXHOST] = "";
  if (getpeername(socket, reinterpret_cast<sockaddr*>(&address), &size) != 0) return "a client that has disconnected";
  getnameinfo(reinterpret_cast<sockaddr*>(&address), size, host, sizeof(host), nullptr, 0, NI_NUMERICHOST);
  return host;
}

// How many bytes poll() waits for.
void SetLowMark(int socket, size_t bytes) {
  const int value = static_cast<int>(bytes);
  setsockopt(socket, SOL_SOCKET, SO_RCVLOWAT, &value, sizeof(value));
}

}  // namespace

FirstBytes::FirstBytes(const Options& options, HandOn hand_on) : options_(options), hand_on_(std::move(hand_on)) {}

FirstBytes::~FirstBytes() {
  for (const Waiting& one : waiting_) close(one.connection);
}

void FirstBytes::Add(int listener, int connection, absl::Duration now) {
  waiting_.push_back({listener, connection, now + options_.patience});
}

void FirstBytes::AppendTo(std::vector<pollfd>* polled) const {
  for (const Waiting& one : waiting_) polled->push_back({one.connection, POLLIN | POLLRDHUP, 0});
}

int FirstBytes::TimeoutMillis(absl::Duration now) const {
  if (waiting_.empty()) return -1;
  const absl::Duration left = std::max(waiting_.front().deadline - now, absl::ZeroDuration());
  return static_cast<int>(absl::ToInt64Milliseconds(left)) + 1;
}

void FirstBytes::Serve(const pollfd* polled, absl::Duration now) {
  std::vector<Waiting> still;
  for (const Waiting& one : waiting_) {
    const short events = (polled++)->revents;
    if (events != 0 && !Examine(one, (events & (POLLRDHUP | POLLHUP | POLLERR)) != 0)) continue;
    if (now >= one.deadline) {
      close(one.connection);
    } else {
      still.push_back(one);
    }
  }
  waiting_.swap(still);
}

bool FirstBytes::Examine(const Waiting& waiting, bool ended) {
  char buffer[32];
  const ssize_t size = recv(waiting.connection, buffer, sizeof(buffer), MSG_PEEK);
  if (size < 0 && (errno == EAGAIN || errno == EINTR) && !ended) return true;
  const absl::string_view said(buffer, static_cast<size_t>(std::max<ssize_t>(size, 0)));
  const absl::string_view wanted = options_.tls ? kTlsHandshake : kHttp2Preface;
  const absl::string_view begin = said.substr(0, wanted.size());
  const bool speaks = !begin.empty() && absl::StartsWith(wanted, begin);
  if (speaks && begin.size() < wanted.size() && !ended) {
    SetLowMark(waiting.connection, wanted.size());
    return true;
  }
  if (begin == wanted) {
    SetLowMark(waiting.connection, 1);
    hand_on_(waiting.listener, waiting.connection);
    return false;
  }
  if (!said.empty()) {  // A silent client only checked that the port is open.
    strangers_.Warn(absl::StrCat("port ", options_.port, " speaks gRPC ", options_.tls ? "by TLS" : "without TLS",
                                 ": closed a connection from ", PeerName(waiting.connection), " that began with ",
                                 Describe(said)));
  }
  close(waiting.connection);
  return false;
}

}  // namespace skein
