// SPDX-License-Identifier: Apache-2.0
// Clients of a gRPC port with TLS that have a good certificate and no manners: they stop within the handshake, want a
// new one again and again, send records that are no records, or read nothing. Nobody else is held up by them.
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "base/net/call_authorization.h"
#include "base/net/grpc_transport.h"
#include "base/net/tls_pem.h"
#include "cli/certificate_authority.h"
#include "grpcpp/client_context.h"
#include "gtest/gtest.h"
#include "openssl/ssl.h"
#include "skein/v1/coordinator_service.grpc.pb.h"
#include "tests/faults/stranger.h"
#include "tests/testing/loopback.h"

namespace skein {
namespace {

class Echo : public v1::Coordinator::Service {
  grpc::Status Join(grpc::ServerContext*, const v1::JoinRequest*, v1::JoinResponse*) override {
    return grpc::Status::OK;
  }
};

// The first bytes of a ClientHello: a record of 512 bytes that holds a handshake message of 508.
const std::string kHalfHello("\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", 11);

class FaultRow26Tls : public testing::Test {
 protected:
  FaultRow26Tls() {
    std::signal(SIGPIPE, SIG_IGN);  // The server closes connections that are written to.
    auto server = StartGrpcServer("127.0.0.1:0", {&service_}, &port_, {}, Issue(kServerName));
    EXPECT_TRUE(server.ok()) << server.status();
    server_ = *std::move(server);
  }

  Credentials Issue(const char* name) const {
    const auto issued = authority_.Issue({.common_name = "test", .names = {name}, .serves = true});
    EXPECT_TRUE(issued.ok()) << issued.status();
    return {issued->certificate_pem, issued->key_pem, authority_.own().certificate_pem, ""};
  }

  // A well-behaved actor is served within five seconds, over a connection of its own.
  void ExpectServed() const {
    const auto stub = v1::Coordinator::NewStub(OpenChannel(absl::StrCat("127.0.0.1:", port_), Issue(kActorName)));
    grpc::ClientContext context;
    context.set_deadline(absl::ToChronoTime(absl::Now() + absl::Seconds(5)));
    v1::JoinResponse response;
    const absl::Status status = FromGrpc(stub->Join(&context, {}, &response));
    EXPECT_TRUE(status.ok()) << status;
  }

  const CertificateAuthority authority_ = *CertificateAuthority::Make(absl::Hours(24));
  Echo service_;
  int port_ = 0;
  std::unique_ptr<grpc::Server> server_;
};

// A TLS connection with an actor's certificate.
class Client {
 public:
  Client(int port, const Credentials& credentials, int version) : fd_(ConnectTo(port)) {
    context_ = SSL_CTX_new(TLS_client_method());
    EXPECT_TRUE(SetUpTlsServer(credentials, context_));  // A client's certificate and CA are set in the same way.
    SSL_CTX_clear_options(context_, SSL_OP_NO_RENEGOTIATION);
    SSL_CTX_set_max_proto_version(context_, version);
    ssl_ = SSL_new(context_);
    EXPECT_EQ(SSL_set_alpn_protos(ssl_, reinterpret_cast<const unsigned char*>("\x02h2"), 3), 0);
    const timeval patience = {2, 0};
    setsockopt(fd_, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience));
    SSL_set_fd(ssl_, fd_);
    EXPECT_EQ(SSL_connect(ssl_), 1);
    EXPECT_EQ(SSL_version(ssl_), version);
  }
  ~Client() {
    SSL_free(ssl_);
    SSL_CTX_free(context_);
    close(fd_);
  }
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  SSL* ssl() const { return ssl_; }
  // Past OpenSSL.
  bool SendRaw(const std::string& bytes) const {
    return send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL) == static_cast<ssize_t>(bytes.size());
  }
  // Whether the server ends the connection, within 20 s.
  bool IsEnded() const {
    char bytes[4096];
    ssize_t size = 0;
    while ((size = recv(fd_, bytes, sizeof(bytes), 0)) > 0) continue;
    return size == 0 || errno == ECONNRESET;
  }

 private:
  const int fd_;
  SSL_CTX* context_ = nullptr;
  SSL* ssl_ = nullptr;
};

TEST_F(FaultRow26Tls, ANewHandshakeWithinTheConnectionIsRefused) {
  const Client client(port_, Issue(kActorName), TLS1_2_VERSION);
  const timeval patience = {2, 0};  // The refusal is sent with the server's next words, which may be in 10 s.
  setsockopt(SSL_get_fd(client.ssl()), SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
  ASSERT_EQ(SSL_renegotiate(client.ssl()), 1);
  EXPECT_NE(SSL_do_handshake(client.ssl()), 1);
  EXPECT_NE(SSL_get_state(client.ssl()), TLS_ST_OK);
  ExpectServed();
}

TEST_F(FaultRow26Tls, KeyUpdatesWithoutEndTakeNoMemory) {
  const size_t memory = ResidentBytes(getpid());
  const Client client(port_, Issue(kActorName), TLS1_3_VERSION);
  int updates = 0;
  for (; updates < 100'000; ++updates) {  // Each wants an answer, and none is read.
    if (SSL_key_update(client.ssl(), SSL_KEY_UPDATE_REQUESTED) != 1 || SSL_do_handshake(client.ssl()) != 1) break;
  }
  printf("%d key updates\n", updates);
  EXPECT_GT(updates, 10);
  EXPECT_LT(ResidentBytes(getpid()), memory + (size_t{32} << 20));
  ExpectServed();
}

TEST_F(FaultRow26Tls, WhatIsNoRecordEndsTheConnection) {
  for (const std::string& bytes : {std::string("\x17\x03\x03\x00\x10garbage garbage!", 21),  // Not encrypted so.
                                   std::string("\x17\x03\x03\xff\xff", 5) + std::string(70'000, 'x'),  // Too long.
                                   std::string("GET / HTTP/1.1\r\n\r\n"), std::string(64, '\0')}) {
    const Client client(port_, Issue(kActorName), TLS1_3_VERSION);
    client.SendRaw(bytes);  // The server may be quicker.
    EXPECT_TRUE(client.IsEnded());
  }
  ExpectServed();
}

TEST_F(FaultRow26Tls, TruncatedRecordsHoldNobodyUp) {
  std::vector<std::unique_ptr<Client>> clients;
  for (size_t size = 1; size <= 21; ++size) {
    clients.push_back(std::make_unique<Client>(port_, Issue(kActorName), TLS1_3_VERSION));
    EXPECT_TRUE(clients.back()->SendRaw(std::string("\x17\x03\x03\x00\x20garbage garbage!", 21).substr(0, size)));
  }
  ExpectServed();
  clients.clear();  // Cut off within a record.
  for (size_t size = 1; size <= kHalfHello.size(); ++size) {
    const int fd = ConnectTo(port_);
    EXPECT_EQ(send(fd, kHalfHello.data(), size, MSG_NOSIGNAL), static_cast<ssize_t>(size));
    close(fd);
  }
  ExpectServed();
}

TEST_F(FaultRow26Tls, HundredsWhoStopWithinTheirHandshakeAreSentAway) {
  const size_t memory = ResidentBytes(getpid());
  std::vector<int> silent;
  for (int i = 0; i < 500; ++i) {
    silent.push_back(ConnectTo(port_));
    EXPECT_EQ(send(silent.back(), kHalfHello.data(), kHalfHello.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(kHalfHello.size()));
  }
  ExpectServed();
  EXPECT_LT(ResidentBytes(getpid()), memory + (size_t{64} << 20));
  char byte;
  for (const int fd : silent) {  // After 10 s.
    const ssize_t got = recv(fd, &byte, 1, 0);
    EXPECT_TRUE(got == 0 || (got < 0 && errno != EAGAIN)) << "still connected after 20 s";
    close(fd);
  }
  ExpectServed();
}

}  // namespace
}  // namespace skein
