// SPDX-License-Identifier: Apache-2.0
#include "learner/ranks/peer_mesh.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <map>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/clock.h"
#include "base/process/steady_wait.h"
#include "learner/ranks/route.h"
#include "tests/testing/loopback.h"

namespace skein {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr absl::Duration kPatience = absl::Seconds(20);
constexpr absl::Duration kShort = absl::Milliseconds(50);

// A table in memory.
class Blackboard {
 public:
  absl::Status Set(const std::string& key, const std::string& value) {
    const absl::MutexLock lock(&mu_);
    entries_[key] = value;
    return absl::OkStatus();
  }
  absl::StatusOr<std::string> Get(const std::string& key, absl::Duration timeout = kPatience) {
    const absl::MutexLock lock(&mu_);
    const auto there = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) { return entries_.count(key) > 0; };
    if (!mu_.AwaitWithTimeout(absl::Condition(&there), timeout)) return absl::DeadlineExceededError(key);
    return entries_[key];
  }
  PeerMesh::Table Table() {
    return {[this](const std::string& key, const std::string& value) { return Set(key, value); },
            [this](const std::string& key) { return Get(key); }};
  }

 private:
  absl::Mutex mu_;
  std::map<std::string, std::string> entries_ ABSL_GUARDED_BY(mu_);
};

using Meshes = std::vector<std::unique_ptr<PeerMesh>>;

Meshes ConnectAll(int size, Blackboard* board) {
  Meshes meshes(static_cast<size_t>(size));
  std::vector<std::thread> threads;
  for (int rank = 0; rank < size; ++rank) {
    threads.emplace_back([&meshes, board, rank, size] {
      auto mesh = PeerMesh::Connect(rank, size, "127.0.0.1", board->Table(), kPatience);
      ASSERT_TRUE(mesh.ok()) << mesh.status();
      meshes[static_cast<size_t>(rank)] = *std::move(mesh);
    });
  }
  for (std::thread& thread : threads) thread.join();
  return meshes;
}

absl::Time In(absl::Duration duration) { return SteadyNow() + duration; }

TEST(PeerMesh, BringsEveryMessageToEverybody) {
  Blackboard board;
  const Meshes meshes = ConnectAll(3, &board);
  std::vector<std::shared_ptr<PeerMesh::Exchange>> exchanges;
  for (int rank = 0; rank < 3; ++rank) exchanges.push_back(meshes[rank]->Start("from" + std::to_string(rank)));
  for (int rank = 0; rank < 3; ++rank) {
    ASSERT_TRUE(meshes[rank]->Wait(*exchanges[rank], In(kPatience)).ok());
    EXPECT_THAT(exchanges[rank]->messages, ElementsAre("from0", "from1", "from2"));
    EXPECT_EQ(meshes[rank]->bytes_sent(), 10);  // 5 bytes to two others.
  }
}

TEST(PeerMesh, BringsEachItsOwnMessage) {
  Blackboard board;
  const Meshes meshes = ConnectAll(2, &board);
  const auto zero = meshes[0]->StartEach({"keep", "for one"}, {4, 3});
  const auto one = meshes[1]->StartEach({"abc", ""}, {7, 0});
  ASSERT_TRUE(meshes[0]->Wait(*zero, In(kPatience)).ok());
  ASSERT_TRUE(meshes[1]->Wait(*one, In(kPatience)).ok());
  EXPECT_THAT(zero->messages, ElementsAre("keep", "abc"));
  EXPECT_THAT(one->messages, ElementsAre("for one", ""));
}

TEST(PeerMesh, KeepsSeveralExchangesApart) {
  Blackboard board;
  const Meshes meshes = ConnectAll(2, &board);
  const auto first = meshes[0]->Start("aa"), second = meshes[0]->Start("bbb");
  const auto others_first = meshes[1]->Start("cc"), others_second = meshes[1]->Start("ddd");
  ASSERT_TRUE(meshes[0]->Wait(*second, In(kPatience)).ok());  // Out of order.
  ASSERT_TRUE(meshes[0]->Wait(*first, In(kPatience)).ok());
  EXPECT_EQ(first->messages[1], "cc");
  EXPECT_EQ(second->messages[1], "ddd");
}

TEST(PeerMesh, CarriesMoreThanSocketsHold) {
  Blackboard board;
  const Meshes meshes = ConnectAll(2, &board);
  const std::string large(32 << 20, 'x'), other(32 << 20, 'y');
  std::thread peer([&] {
    const auto exchange = meshes[1]->Start(other);
    EXPECT_TRUE(meshes[1]->Wait(*exchange, In(kPatience)).ok());
    EXPECT_TRUE(exchange->messages[0] == large);
  });
  const auto exchange = meshes[0]->Start(large);
  EXPECT_TRUE(meshes[0]->Wait(*exchange, In(kPatience)).ok());
  EXPECT_TRUE(exchange->messages[1] == other);
  peer.join();
}

TEST(PeerMesh, NamesTheRanksThatAreLate) {
  Blackboard board;
  const Meshes meshes = ConnectAll(3, &board);
  const auto exchange = meshes[0]->Start("x");
  const auto others = meshes[1]->Start("y");
  const absl::Status status = meshes[0]->Wait(*exchange, In(kShort));
  EXPECT_EQ(status.code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_EQ(status.message(), "nothing yet from rank 2");
}

TEST(PeerMesh, NamesTheRankThatIsGone) {
  Blackboard board;
  Meshes meshes = ConnectAll(3, &board);
  meshes[2].reset();
  const auto exchange = meshes[0]->Start("x");
  const absl::Status status = meshes[0]->Wait(*exchange, In(kPatience));
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(status.message(), "rank 2 has closed its connection");
}

TEST(PeerMesh, TakesWhatARankSentBeforeItLeft) {
  Blackboard board;
  Meshes meshes = ConnectAll(2, &board);
  const auto mine = meshes[0]->Start("x");
  const auto theirs = meshes[1]->Start("y");
  ASSERT_TRUE(meshes[1]->Wait(*theirs, In(kPatience)).ok());
  meshes[1].reset();
  EXPECT_TRUE(meshes[0]->Wait(*mine, In(kPatience)).ok());
  EXPECT_EQ(mine->messages[1], "y");
}

TEST(PeerMesh, HangsUpOnStrangers) {
  Blackboard board;
  absl::StatusOr<std::unique_ptr<PeerMesh>> zero = absl::UnknownError("");
  std::thread serving([&] { zero = PeerMesh::Connect(0, 2, "127.0.0.1", board.Table(), kPatience); });
  const std::vector<std::string> entry = absl::StrSplit(*board.Get("mesh/0"), ' ');
  int port = 0;
  ASSERT_TRUE(absl::SimpleAtoi(entry[1], &port));
  const int stranger = ConnectTo(port);
  ASSERT_GE(stranger, 0);
  const std::string greeting(24, '1');  // As long as a rank's, with a wrong token.
  ASSERT_EQ(send(stranger, greeting.data(), greeting.size(), 0), 24);
  char byte;
  EXPECT_EQ(recv(stranger, &byte, 1, 0), 0);  // Closed.
  close(stranger);
  const auto one = PeerMesh::Connect(1, 2, "127.0.0.1", board.Table(), kPatience);
  serving.join();
  EXPECT_TRUE(one.ok()) << one.status();
  EXPECT_TRUE(zero.ok()) << zero.status();
}

TEST(PeerMesh, GivesUpOnRanksThatDoNotCome) {
  Blackboard board;
  const auto mesh = PeerMesh::Connect(0, 2, "127.0.0.1", board.Table(), kShort);
  EXPECT_EQ(mesh.status().code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_THAT(std::string(mesh.status().message()), HasSubstr("1 ranks have not connected"));
}

TEST(PeerMesh, ListensOnlyOnAnAddressOfThisNode) {
  Blackboard board;
  // 192.0.2.0/24 is for documents.
  const auto mesh = PeerMesh::Connect(0, 1, "192.0.2.1", board.Table(), kShort);
  EXPECT_EQ(mesh.status().code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(mesh.status().message()), HasSubstr("192.0.2.1"));
}

TEST(Route, LeadsOverLoopbackToLoopback) {
  const auto route = FindRoute("127.0.0.1", 7070);
  ASSERT_TRUE(route.has_value());
  EXPECT_EQ(route->local, "127.0.0.1");
  EXPECT_EQ(route->remote, "127.0.0.1");
}

TEST(Route, IsNoneToWhatIsNoHost) { EXPECT_FALSE(FindRoute("", 7070).has_value()); }

}  // namespace
}  // namespace skein
