// SPDX-License-Identifier: Apache-2.0
#include "learner/ranks/peer_mesh.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sched.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <random>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "base/process/steady_wait.h"
#include "learner/ranks/listener.h"

namespace skein {
namespace {

constexpr int kSocketBuffer = 1 << 20;  // Bytes that a send leaves behind without waiting, if the kernel allows it.
// How long a rank polls before it sleeps: being woken takes longer than most messages.
constexpr absl::Duration kAwake = absl::Microseconds(100);
constexpr size_t kTokenBytes = 16;
constexpr size_t kRankBytes = 8;

std::string Key(int rank) { return absl::StrCat("mesh/", rank); }

absl::Status SystemError(const std::string& what) {
  return absl::UnavailableError(absl::StrCat(what, ": ", std::strerror(errno)));
}

int Milliseconds(absl::Time deadline) {
  const int64_t left = absl::ToInt64Milliseconds(absl::Ceil(deadline - SteadyNow(), absl::Milliseconds(1)));
  return static_cast<int>(std::clamp<int64_t>(left, 0, 1 << 30));
}

// Whether `descriptor` is ready before the deadline.
bool Ready(int descriptor, int events, absl::Time deadline) {
  pollfd entry = {descriptor, static_cast<int16_t>(events), 0};
  while (true) {
    const int ready = poll(&entry, 1, Milliseconds(deadline));
    if (ready > 0) return true;
    if (ready == 0 || errno != EINTR) return false;
  }
}

void Tune(int descriptor) {
  const int on = 1;
  setsockopt(descriptor, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
  setsockopt(descriptor, SOL_SOCKET, SO_SNDBUF, &kSocketBuffer, sizeof(kSocketBuffer));
  setsockopt(descriptor, SOL_SOCKET, SO_RCVBUF, &kSocketBuffer, sizeof(kSocketBuffer));
}

struct AddressInfo {
  sockaddr_storage storage = {};
  socklen_t size = sizeof(storage);
  sockaddr* generic() { return reinterpret_cast<sockaddr*>(&storage); }
};

absl::StatusOr<AddressInfo> ParseAddress(const std::string& host, const std::string& port) {
  addrinfo hints = {};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV;
  addrinfo* found = nullptr;
  if (const int error = getaddrinfo(host.c_str(), port.c_str(), &hints, &found); error != 0) {
    return absl::UnavailableError(absl::StrCat(host, " port ", port, ": ", gai_strerror(error)));
  }
  AddressInfo address;
  std::memcpy(&address.storage, found->ai_addr, found->ai_addrlen);
  address.size = found->ai_addrlen;
  freeaddrinfo(found);
  return address;
}

absl::StatusOr<int> DialOne(const std::string& host, const std::string& port, absl::Time deadline) {
  auto address = ParseAddress(host, port);
  if (!address.ok()) return address.status();
  const std::string where = absl::StrCat("connecting to ", host, " port ", port);
  const int descriptor = socket(address->storage.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (descriptor < 0) return SystemError(where);
  absl::Cleanup close_it = [descriptor] { close(descriptor); };
  Tune(descriptor);
  if (connect(descriptor, address->generic(), address->size) != 0) {
    if (errno != EINPROGRESS) return SystemError(where);
    if (!Ready(descriptor, POLLOUT, deadline)) return absl::DeadlineExceededError(where);
    socklen_t size = sizeof(errno);
    if (getsockopt(descriptor, SOL_SOCKET, SO_ERROR, &errno, &size) != 0 || errno != 0) return SystemError(where);
  }
  std::move(close_it).Cancel();
  return descriptor;
}

std::string NewToken() {
  std::random_device entropy;
  std::string token;
  while (token.size() < kTokenBytes) token += "0123456789abcdef"[entropy() % 16];
  return token;
}

bool WouldBlock() { return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR; }

}  // namespace

bool PeerMesh::Exchange::Done() const {
  for (size_t rank = 0; rank < messages.size(); ++rank) {
    if (received[rank] < messages[rank].size()) return false;
  }
  return true;
}

absl::StatusOr<std::unique_ptr<PeerMesh>> PeerMesh::Connect(int rank, int size, const std::string& address,
                                                            const Table& table, absl::Duration timeout) {
  const absl::Time deadline = SteadyNow() + timeout;
  std::unique_ptr<PeerMesh> mesh(new PeerMesh(rank, size));
  const auto listener = ListenOn(address, 0, size);
  if (!listener.ok()) return listener.status();
  const absl::Cleanup close_listener = [&] { close(listener->descriptor); };
  const std::string token = NewToken();
  absl::Status status = table.set(Key(rank), absl::StrJoin({address, std::to_string(listener->port), token}, " "));
  if (status.ok()) status = mesh->Dial(table, deadline);
  if (status.ok()) status = mesh->Admit(listener->descriptor, token, deadline);
  if (!status.ok()) return status;
  return mesh;
}

PeerMesh::~PeerMesh() {
  for (const Peer& peer : peers_) {
    if (peer.descriptor >= 0) close(peer.descriptor);
  }
}

// Connects to the ranks below this one and sends them this rank's number.
absl::Status PeerMesh::Dial(const Table& table, absl::Time deadline) {
  for (int rank = 0; rank < rank_; ++rank) {
    const auto entry = table.get(Key(rank));
    if (!entry.ok()) return entry.status();
    const std::vector<std::string> words = absl::StrSplit(*entry, ' ');
    if (words.size() != 3) return absl::UnavailableError(absl::StrCat("rank ", rank, " left no address: ", *entry));
    const auto descriptor = DialOne(words[0], words[1], deadline);
    if (!descriptor.ok()) {
      return absl::Status(descriptor.status().code(), absl::StrCat("rank ", rank, ": ", descriptor.status().message()));
    }
    Peer& peer = peers_[static_cast<size_t>(rank)];
    peer.descriptor = *descriptor;
    std::string own_rank = std::to_string(rank_);
    own_rank.resize(kRankBytes, ' ');
    peer.outgoing = words[2] + own_rank;
    Send(&peer);  // Few bytes: they always fit.
  }
  return absl::OkStatus();
}

// Accepts the ranks above this one, and closes all other connections.
absl::Status PeerMesh::Admit(int listener, const std::string& token, absl::Time deadline) {
  int missing = static_cast<int>(peers_.size()) - 1 - rank_;
  while (missing > 0) {
    if (!Ready(listener, POLLIN, deadline)) {
      return absl::DeadlineExceededError(absl::StrCat(missing, " ranks have not connected"));
    }
    const int descriptor = accept4(listener, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (descriptor < 0) continue;
    std::array<char, kTokenBytes + kRankBytes> greeting;
    size_t have = 0;
    const absl::Time patience = std::min(deadline, SteadyNow() + absl::Seconds(1));
    while (have < greeting.size() && Ready(descriptor, POLLIN, patience)) {
      const ssize_t count = recv(descriptor, greeting.data() + have, greeting.size() - have, 0);
      if (count <= 0) break;
      have += static_cast<size_t>(count);
    }
    const std::string text(greeting.data(), have);
    int rank = -1;
    const bool known = have == greeting.size() && text.substr(0, kTokenBytes) == token &&
                       absl::SimpleAtoi(text.substr(kTokenBytes), &rank) && rank > rank_ &&
                       rank < static_cast<int>(peers_.size());
    if (!known || peers_[static_cast<size_t>(rank)].descriptor >= 0) {
      close(descriptor);
      continue;
    }
    Tune(descriptor);
    peers_[static_cast<size_t>(rank)].descriptor = descriptor;
    --missing;
  }
  return absl::OkStatus();
}

std::shared_ptr<PeerMesh::Exchange> PeerMesh::Start(absl::string_view mine) {
  return StartEach(std::vector<absl::string_view>(peers_.size(), mine),
                   std::vector<size_t>(peers_.size(), mine.size()));
}

std::shared_ptr<PeerMesh::Exchange> PeerMesh::StartEach(const std::vector<absl::string_view>& to,
                                                        const std::vector<size_t>& expected) {
  const auto exchange = std::make_shared<Exchange>();
  exchange->messages.resize(peers_.size());
  exchange->received.assign(peers_.size(), 0);
  for (size_t rank = 0; rank < peers_.size(); ++rank) {
    Peer& peer = peers_[rank];
    if (peer.descriptor < 0) {
      exchange->messages[rank] = std::string(to[rank]);
      exchange->received[rank] = to[rank].size();
      continue;
    }
    Queue(to[rank], &peer);
    bytes_sent_ += static_cast<int64_t>(to[rank].size());
  }
  // While the first messages are on their way:
  for (size_t rank = 0; rank < peers_.size(); ++rank) {
    if (peers_[rank].descriptor < 0) continue;
    exchange->messages[rank].resize(expected[rank]);
    peers_[rank].awaited.push_back(exchange);
  }
  return exchange;
}

absl::Status PeerMesh::Wait(const Exchange& exchange, absl::Time deadline) {
  std::vector<pollfd> entries(peers_.size());
  const absl::Time sleep = SteadyNow() + kAwake;
  while (true) {
    bool sent = true;
    for (size_t rank = 0; rank < peers_.size(); ++rank) {
      Peer& peer = peers_[rank];
      entries[rank] = {peer.closed ? -1 : peer.descriptor, POLLIN, 0};
      if (peer.descriptor < 0) continue;
      Send(&peer);
      Receive(rank, &peer);
      if (peer.outgoing.empty()) continue;
      entries[rank].events |= POLLOUT;
      sent = false;
    }
    if (sent && exchange.Done()) return absl::OkStatus();
    for (size_t rank = 0; rank < peers_.size(); ++rank) {
      if (!peers_[rank].closed) continue;
      if (exchange.received[rank] < exchange.messages[rank].size() || !peers_[rank].outgoing.empty()) {
        return absl::UnavailableError(absl::StrCat("rank ", rank, " has closed its connection"));
      }
    }
    if (SteadyNow() < sleep) {
      sched_yield();  // To a rank that has not sent yet, where ranks share a core.
      continue;
    }
    const int ready = poll(entries.data(), entries.size(), Milliseconds(deadline));
    if (ready == 0) {
      return absl::DeadlineExceededError(absl::StrCat("nothing yet from rank ", Missing(exchange)));
    }
  }
}

void PeerMesh::Queue(absl::string_view message, Peer* peer) {
  if (peer->outgoing.empty()) message.remove_prefix(SendSome(message, peer));
  peer->outgoing.append(message.data(), message.size());
}

void PeerMesh::Send(Peer* peer) {
  peer->sent += SendSome(absl::string_view(peer->outgoing).substr(peer->sent), peer);
  if (peer->sent < peer->outgoing.size()) return;
  peer->outgoing.clear();
  peer->sent = 0;
}

size_t PeerMesh::SendSome(absl::string_view message, Peer* peer) {
  size_t sent = 0;
  while (!peer->closed && sent < message.size()) {
    const ssize_t count =
        send(peer->descriptor, message.data() + sent, message.size() - sent, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (count >= 0) {
      sent += static_cast<size_t>(count);
    } else if (WouldBlock()) {
      break;
    } else {
      peer->closed = true;
    }
  }
  return sent;
}

void PeerMesh::Receive(size_t from, Peer* peer) {
  while (!peer->awaited.empty()) {
    Exchange& exchange = *peer->awaited.front();
    std::string& message = exchange.messages[from];
    size_t& received = exchange.received[from];
    if (received == message.size()) {
      peer->awaited.pop_front();
      continue;
    }
    const ssize_t count = recv(peer->descriptor, message.data() + received, message.size() - received, MSG_DONTWAIT);
    if (count < 0 && WouldBlock()) return;
    if (count <= 0) {
      peer->closed = true;
      return;
    }
    received += static_cast<size_t>(count);
  }
}

std::string PeerMesh::Missing(const Exchange& exchange) const {
  std::vector<int> ranks;
  for (size_t rank = 0; rank < peers_.size(); ++rank) {
    if (exchange.received[rank] < exchange.messages[rank].size() || !peers_[rank].outgoing.empty()) {
      ranks.push_back(static_cast<int>(rank));
    }
  }
  return absl::StrJoin(ranks, ", ");
}

}  // namespace skein
