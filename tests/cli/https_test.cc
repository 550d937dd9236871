// SPDX-License-Identifier: Apache-2.0
// The HTTP server with a certificate as `skein certs init` makes it.
#include <unistd.h>

#include <string>
#include <vector>

#include "base/net/call_authorization.h"
#include "base/net/http_server.h"
#include "cli/certificate_authority.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "openssl/ssl.h"
#include "tests/testing/loopback.h"

namespace skein {
namespace {

// The answer by HTTPS, if it comes within 20 s.
std::string HttpsGet(int port, const std::string& path) {
  SSL_CTX* const context = SSL_CTX_new(TLS_client_method());
  SSL* const ssl = SSL_new(context);
  const int fd = ConnectTo(port);
  SSL_set_fd(ssl, fd);
  EXPECT_EQ(SSL_connect(ssl), 1);
  const std::string request = "GET " + path + " HTTP/1.1\r\nHost: localhost\r\n\r\n";
  EXPECT_GT(SSL_write(ssl, request.data(), static_cast<int>(request.size())), 0);
  std::string answer;
  char some[4096];
  for (int got = 0; (got = SSL_read(ssl, some, sizeof(some))) > 0;) answer.append(some, static_cast<size_t>(got));
  SSL_free(ssl);
  SSL_CTX_free(context);
  close(fd);
  return answer;
}

// Clients that never finish their handshake, and one that does.
TEST(Https, SlowHandshakesHoldNobodyUp) {
  const CertificateAuthority authority = *CertificateAuthority::Make(absl::Hours(24));
  const auto issued = authority.Issue({.common_name = "test", .names = {kServerName}, .serves = true});
  ASSERT_TRUE(issued.ok()) << issued.status();
  const auto server = HttpServer::Listen(
      "127.0.0.1:0", {issued->certificate_pem, issued->key_pem, authority.own().certificate_pem, "0123456789abcdef"});
  ASSERT_TRUE(server.ok()) << server.status();
  const std::string page(size_t{3} << 20, 'x');
  (*server)->Handle("/healthz", [&] { return HttpServer::Response{200, "text/plain", page + "end"}; });
  std::vector<int> slow;
  for (int i = 0; i < 200; ++i) {
    slow.push_back(ConnectTo((*server)->port()));
    EXPECT_EQ(send(slow.back(), "\x16\x03\x01\x02", 4, MSG_NOSIGNAL), 4);  // A TLS record's first bytes.
  }
  EXPECT_THAT(HttpsGet((*server)->port(), "/healthz"), testing::EndsWith("xxend"));
  for (const int fd : slow) close(fd);
}

}  // namespace
}  // namespace skein
