// SPDX-License-Identifier: Apache-2.0
// With a real server: what channelz counts, and what a disconnected client sees. Floods by real processes are in
// tests/faults/flood_test.cc.
#include "base/net/connection_guard.h"

#include <poll.h>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/clock.h"
#include "base/net/grpc_transport.h"
#include "gtest/gtest.h"
#include "skein/v1/coordinator_service.grpc.pb.h"
#include "tests/testing/loopback.h"
#include "tests/testing/wait_until.h"

namespace skein {
namespace {

// Answers a join at once, and a leave only when its caller has gone. Notes from which port it was called.
class Service final : public v1::Coordinator::Service {
 public:
  int peer_port() {
    absl::MutexLock lock(&mu_);
    return peer_port_;
  }

 private:
  grpc::Status Join(grpc::ServerContext* context, const v1::JoinRequest*, v1::JoinResponse*) override {
    const std::string peer = context->peer();
    absl::MutexLock lock(&mu_);
    EXPECT_TRUE(absl::SimpleAtoi(peer.substr(peer.rfind(':') + 1), &peer_port_));
    return grpc::Status::OK;
  }
  grpc::Status Leave(grpc::ServerContext* context, const v1::LeaveRequest*, v1::LeaveResponse*) override {
    EXPECT_TRUE(WaitUntil([&] { return context->IsCancelled(); }));
    return grpc::Status::OK;
  }

  absl::Mutex mu_;
  int peer_port_ ABSL_GUARDED_BY(mu_) = 0;
};

struct Served {
  Served() {
    auto started = StartGrpcServer("127.0.0.1:0", &service, &port);
    EXPECT_TRUE(started.ok()) << started.status();
    server = *std::move(started);
    stub = v1::Coordinator::NewStub(OpenChannel(absl::StrCat("127.0.0.1:", port)));
  }
  grpc::Status Join() const {
    grpc::ClientContext context;
    context.set_deadline(absl::ToChronoTime(absl::Now() + absl::Seconds(10)));
    v1::JoinResponse response;
    return stub->Join(&context, {}, &response);
  }
  // A call that its caller gives up.
  void GiveUpLeaving() const {
    grpc::ClientContext context;
    context.set_deadline(absl::ToChronoTime(absl::Now() + absl::Milliseconds(20)));
    v1::LeaveResponse response;
    EXPECT_EQ(stub->Leave(&context, {}, &response).error_code(), grpc::StatusCode::DEADLINE_EXCEEDED);
  }
  ConnectionName Name() { return {port, std::string("\x7f\0\0\1", 4), service.peer_port()}; }

  Service service;
  int port = 0;
  std::unique_ptr<grpc::Server> server;
  std::unique_ptr<v1::Coordinator::Stub> stub;
};

TEST(StreamCounts, TellAnsweredCallsFromThoseThatWereReset) {
  Served served;
  ASSERT_TRUE(served.Join().ok());
  StreamCounts counts;
  EXPECT_TRUE(WaitUntil([&] {
    const auto now = counts.Of(served.Name());
    return now.has_value() && now->started == 1 && now->answered == 1 && now->alive() == 0;
  }));
  served.GiveUpLeaving();
  EXPECT_TRUE(WaitUntil([&] {
    const auto now = counts.Of(served.Name());
    return now.has_value() && now->started == 2 && now->answered == 1 && now->reset == 1;
  }));
}

TEST(StreamCounts, KnowNothingOfOtherConnections) {
  Served served;
  ASSERT_TRUE(served.Join().ok());
  StreamCounts counts;
  ConnectionName name = served.Name();
  EXPECT_TRUE(counts.Of(name).has_value());
  ++name.local_port;
  EXPECT_FALSE(counts.Of(name).has_value());
}

// gRPC may close a file at any time, and the next connection gets its number.
TEST(Disconnect, LeavesAnotherSocketOfTheSameNumberAlone) {
  int pair[2];
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
  const uint64_t before = CookieOf(pair[0]).value();
  close(pair[0]);
  close(pair[1]);
  const Served served;
  const int other = ConnectTo(served.port);
  ASSERT_GE(other, 0);
  EXPECT_FALSE(Disconnect(other, before));
  EXPECT_EQ(send(other, "P", 1, MSG_NOSIGNAL), 1);
  EXPECT_TRUE(Disconnect(other, CookieOf(other).value()));
  EXPECT_EQ(send(other, "R", 1, MSG_NOSIGNAL), -1);
  close(other);
  EXPECT_FALSE(Disconnect(other, before));
}

// The server's end of the connection, as the guard is given it.
int SocketOf(const ConnectionName& name) {
  for (int fd = 3; fd < 1024; ++fd) {
    if (NameOfConnection(fd) == name) return fd;
  }
  return -1;
}

TEST(ConnectionGuard, EndsTheConnectionThatResetsItsCallsAndNoOther) {
  Served served;
  ASSERT_TRUE(served.Join().ok());
  const ConnectionName offender = served.Name();
  const auto other = v1::Coordinator::NewStub(OpenChannel(absl::StrCat("127.0.0.1:", served.port)));
  grpc::ClientContext context;
  v1::JoinResponse response;
  ASSERT_TRUE(other->Join(&context, {}, &response).ok());
  const ConnectionName innocent = served.Name();

  ConnectionGuard guard({.resets = 2, .resets_per_second = 0});
  absl::Duration now = absl::Seconds(1);
  EXPECT_EQ(guard.TimeoutMillis(now), -1);
  for (const ConnectionName& name : {offender, innocent}) {
    ASSERT_GE(SocketOf(name), 0);
    guard.Add(SocketOf(name), now);
  }
  EXPECT_GE(guard.TimeoutMillis(now), 0);
  EXPECT_TRUE(guard.Look(now += absl::Seconds(1)).ended.empty());
  StreamCounts counts;
  for (int i = 0; i < 3; ++i) served.GiveUpLeaving();
  ASSERT_TRUE(WaitUntil([&] { return counts.Of(offender)->reset == 3; }));
  // A look wants some bytes more, since a connection that has sent little cannot have made many calls.
  std::string padding(2000, 'x');
  grpc::ClientContext padded;
  v1::JoinRequest request;
  request.set_host(padding);
  ASSERT_TRUE(served.stub->Join(&padded, request, &response).ok());
  EXPECT_EQ(guard.Look(now += absl::Seconds(1)).ended, std::vector<std::string>{offender.peer_address});
  EXPECT_TRUE(WaitUntil([&] { return SocketOf(offender) < 0; }));  // gRPC has closed it.
  EXPECT_GE(SocketOf(innocent), 0);
  EXPECT_TRUE(guard.Look(now += absl::Seconds(1)).ended.empty());
  // Its client may connect again.
  EXPECT_TRUE(WaitUntil([&] { return served.Join().ok(); }));
}

// Frames that are no calls: HTTP/2 pings, of 17 bytes each.
std::string Pings(int count) {
  std::string pings;
  for (int i = 0; i < count; ++i) pings += std::string("\0\0\x08\x06\0\0\0\0\0", 9) + "12345678";
  return pings;
}

TEST(ConnectionGuard, EndsTheConnectionThatPingsWithoutEndAndNoneThatSendsALongMessage) {
  Served served;
  const int attacker = ConnectTo(served.port);
  const std::string greeting("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\x00\x00\x04\x00\x00\x00\x00\x00", 24 + 9);
  const auto send_all = [&](const std::string& bytes) {
    return send(attacker, bytes.data(), bytes.size(), MSG_NOSIGNAL) == static_cast<ssize_t>(bytes.size());
  };
  ASSERT_TRUE(send_all(greeting + Pings(10)));
  const ConnectionName own = *NameOfConnection(attacker);
  const ConnectionName name{served.port, own.peer_address, own.local_port};
  ASSERT_TRUE(WaitUntil([&] { return SocketOf(name) >= 0; }));
  StreamCounts counts;
  ASSERT_TRUE(WaitUntil([&] { return counts.Of(name).has_value(); }));

  ConnectionGuard guard({.useless_bytes = 10'000, .message_bytes = 1'000'000});
  absl::Duration now = absl::Seconds(1);
  ASSERT_TRUE(served.Join().ok());
  const ConnectionName innocent = served.Name();
  for (const ConnectionName& one : {name, innocent}) guard.Add(SocketOf(one), now);
  ASSERT_TRUE(send_all(Pings(500)));
  // A call that is as long as it may be.
  grpc::ClientContext context;
  v1::JoinRequest request;
  v1::JoinResponse response;
  request.set_host(std::string(900'000, 'x'));
  ASSERT_TRUE(served.stub->Join(&context, request, &response).ok());
  EXPECT_TRUE(guard.Look(now += absl::Seconds(1)).ended.empty());
  ASSERT_TRUE(send_all(Pings(500)));
  EXPECT_TRUE(WaitUntil(
      [&] { return guard.Look(now += absl::Seconds(1)).ended == std::vector<std::string>{name.peer_address}; }));
  EXPECT_TRUE(WaitUntil([&] { return SocketOf(name) < 0; }));  // gRPC has closed it.
  EXPECT_GE(SocketOf(innocent), 0);
  close(attacker);
}

TEST(ConnectionGuard, AConnectionIsNewUntilALookFindsThatItBehaves) {
  Served served;
  ASSERT_TRUE(served.Join().ok());
  const ConnectionName quiet = served.Name();
  ConnectionGuard guard({.open = 0, .new_at_least = absl::Milliseconds(5), .new_at_most = absl::Seconds(3)});
  absl::Duration now = absl::Seconds(1);
  ASSERT_TRUE(guard.Add(SocketOf(quiet), now));
  EXPECT_TRUE(guard.Look(now).settled.empty());
  // It has sent little.
  EXPECT_EQ(guard.Look(now += absl::Seconds(1)).settled, std::vector<std::string>{quiet.peer_address});
  EXPECT_TRUE(guard.Look(now += absl::Seconds(1)).settled.empty());  // Once.

  // It has sent much, and no call is being worked on any more.
  grpc::ClientContext context;
  v1::JoinRequest request;
  v1::JoinResponse response;
  request.set_host(std::string(20'000, 'x'));
  ASSERT_TRUE(served.stub->Join(&context, request, &response).ok());
  ASSERT_TRUE(guard.Add(SocketOf(quiet), now));
  EXPECT_TRUE(WaitUntil([&] {
    return guard.Look(now += absl::Milliseconds(30)).settled == std::vector<std::string>{quiet.peer_address};
  }));
}

TEST(ConnectionGuard, AConnectionWithoutCallsIsNewForItsTimeAndNoLonger) {
  Served served;
  const int client = ConnectTo(served.port);
  const std::string greeting("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\x00\x00\x04\x00\x00\x00\x00\x00", 24 + 9);
  const std::string bytes = greeting + Pings(600);
  ASSERT_EQ(send(client, bytes.data(), bytes.size(), MSG_NOSIGNAL), static_cast<ssize_t>(bytes.size()));
  const ConnectionName own = *NameOfConnection(client);
  const ConnectionName name{served.port, own.peer_address, own.local_port};
  ASSERT_TRUE(WaitUntil([&] { return SocketOf(name) >= 0; }));
  StreamCounts counts;
  ASSERT_TRUE(WaitUntil([&] { return counts.Of(name).has_value(); }));
  ConnectionGuard guard({.new_at_most = absl::Seconds(3)});
  absl::Duration now = absl::Seconds(1);
  ASSERT_TRUE(guard.Add(SocketOf(name), now));
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(guard.Look(now += absl::Seconds(1)).settled.empty());
  EXPECT_EQ(guard.Look(now += absl::Seconds(1)).settled, std::vector<std::string>{name.peer_address});
  // One whose number another connection gets is new no more either.
  ASSERT_TRUE(guard.Add(SocketOf(name), now));
  ASSERT_TRUE(guard.Add(SocketOf(name), now));
  EXPECT_EQ(guard.Look(now += absl::Seconds(1)).settled, std::vector<std::string>{name.peer_address});
  // Nor is one that has gone.
  close(client);
  EXPECT_TRUE(WaitUntil([&] {
    return guard.Look(now += absl::Milliseconds(30)).settled == std::vector<std::string>{name.peer_address};
  }));
}

// On a busy machine gRPC may read it much later.
TEST(ConnectionGuard, WhatWaitsToBeReadHasBeenSent) {
  const int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
  socklen_t size = sizeof(address);
  ASSERT_EQ(bind(listener, reinterpret_cast<sockaddr*>(&address), size), 0);
  ASSERT_EQ(listen(listener, 1), 0);
  ASSERT_EQ(getsockname(listener, reinterpret_cast<sockaddr*>(&address), &size), 0);
  const int client = ConnectTo(ntohs(address.sin_port));
  const int served = accept(listener, nullptr, nullptr);
  ASSERT_GE(served, 0);
  const std::string bytes(20'000, 'x');
  ASSERT_EQ(send(client, bytes.data(), bytes.size(), MSG_NOSIGNAL), static_cast<ssize_t>(bytes.size()));
  ConnectionGuard guard({.new_at_least = absl::Milliseconds(5), .new_at_most = absl::Seconds(3)});
  absl::Duration now = absl::Seconds(1);
  ASSERT_TRUE(guard.Add(served, now));
  EXPECT_TRUE(guard.Look(now += absl::Seconds(1)).settled.empty());
  std::string read(bytes.size(), ' ');
  ASSERT_EQ(recv(served, read.data(), read.size(), MSG_WAITALL), static_cast<ssize_t>(read.size()));
  EXPECT_TRUE(guard.Look(now += absl::Seconds(1)).settled.empty());
  for (const int fd : {served, client, listener}) close(fd);
}

}  // namespace
}  // namespace skein
