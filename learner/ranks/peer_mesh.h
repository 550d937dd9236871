// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"

// TCP connections between all pairs of ranks, for messages so small that waking a thread would cost more than sending
// them: the calling thread itself sends and receives.   PeerMesh::Connect -> Start -> Wait
namespace skein {

// Not thread-safe. All ranks start the same exchanges in the same order. Errors name the ranks concerned:
// DeadlineExceeded: nothing arrived from them in time. Unavailable: their connections are closed.
class PeerMesh {
 public:
  // The key-value store in which ranks look each other up; `get` waits until the key exists. Neither throws.
  struct Table {
    std::function<absl::Status(const std::string& key, const std::string& value)> set;
    std::function<absl::StatusOr<std::string>(const std::string& key)> get;
  };
  // The messages received in one exchange.
  struct Exchange {
    std::vector<std::string> messages;  // By rank.
    std::vector<size_t> received;       // Bytes received of each.
    bool Done() const;
  };

  // `address`: a numeric address of this node that the others can reach. Unavailable also if it is not of this node.
  static absl::StatusOr<std::unique_ptr<PeerMesh>> Connect(int rank, int size, const std::string& address,
                                                           const Table& table, absl::Duration timeout);
  ~PeerMesh();
  PeerMesh(const PeerMesh&) = delete;
  PeerMesh& operator=(const PeerMesh&) = delete;

  // Begins to send `mine` to every other rank and expects as many bytes from each. Does not block. Several exchanges
  // may be under way.
  std::shared_ptr<Exchange> Start(absl::string_view mine);
  // The same with message to[r] for rank r and expected[r] bytes from it.
  std::shared_ptr<Exchange> StartEach(const std::vector<absl::string_view>& to, const std::vector<size_t>& expected);
  absl::Status Wait(const Exchange& exchange, absl::Time deadline);

  int rank() const { return rank_; }
  int size() const { return static_cast<int>(peers_.size()); }
  // Bytes for other ranks given to Start and StartEach so far.
  int64_t bytes_sent() const { return bytes_sent_; }

 private:
  struct Peer {
    int descriptor = -1;   // -1: this rank itself.
    std::string outgoing;  // Not sent yet: bytes from index `sent`.
    size_t sent = 0;
    std::deque<std::shared_ptr<Exchange>> awaited;
    bool closed = false;
  };

  PeerMesh(int rank, int size) : rank_(rank), peers_(static_cast<size_t>(size)) {}
  absl::Status Dial(const Table& table, absl::Time deadline);
  absl::Status Admit(int listener, const std::string& token, absl::Time deadline);
  // Sends at once what the kernel accepts, and stores the rest in `outgoing`.
  static void Queue(absl::string_view message, Peer* peer);
  static void Send(Peer* peer);
  // Sends as much as the kernel accepts now; returns how many bytes that was.
  static size_t SendSome(absl::string_view message, Peer* peer);
  void Receive(size_t from, Peer* peer);
  // The ranks whose message in `exchange` is incomplete.
  std::string Missing(const Exchange& exchange) const;

  const int rank_;
  std::vector<Peer> peers_;  // By rank.
  int64_t bytes_sent_ = 0;
};

}  // namespace skein
