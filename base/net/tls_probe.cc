// SPDX-License-Identifier: Apache-2.0
#include "base/net/tls_probe.h"

#include <netdb.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <memory>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "base/net/host_port.h"
#include "base/net/tls_pem.h"
#include "openssl/err.h"
#include "openssl/ssl.h"
#include "openssl/x509.h"

namespace skein {
namespace {

// A blocking socket whose operations take `limit` each at most; -1: no connection.
int Connect(const HostPort& address, absl::Duration limit) {
  addrinfo hints = {};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  if (getaddrinfo(address.host.c_str(), std::to_string(address.port).c_str(), &hints, &found) != 0) return -1;
  const absl::Cleanup free_found = [found] { freeaddrinfo(found); };
  const timeval time = absl::ToTimeval(limit);
  for (const addrinfo* one = found; one != nullptr; one = one->ai_next) {
    const int fd = socket(one->ai_family, one->ai_socktype | SOCK_CLOEXEC, one->ai_protocol);
    if (fd < 0) continue;
    setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &time, sizeof(time));
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &time, sizeof(time));
    if (connect(fd, one->ai_addr, one->ai_addrlen) == 0) return fd;
    close(fd);
  }
  return -1;
}

// What `result`, of an operation of `connection`, and the server's certificate tell.
std::string Describe(const SSL* connection, int result, bool has_tls) {
  if (SSL_get_error(connection, result) == SSL_ERROR_WANT_READ) return "";  // It took too long.
  if (SSL_get0_peer_certificate(connection) == nullptr) {
    return has_tls ? "it does not speak TLS: leave out --tls-cert, --tls-key and --tls-ca" : "";
  }
  if (!has_tls) return "it speaks only TLS: give --tls-cert, --tls-key and --tls-ca";
  const auto verified = SSL_get_verify_result(connection);
  if (verified != X509_V_OK) {
    return absl::StrCat("its certificate is not accepted (", X509_verify_cert_error_string(verified),
                        "): --tls-ca must be the CA of this run");
  }
  return "it refuses the certificate of --tls-cert: that must be of the CA of this run, and not expired";
}

}  // namespace

std::string FindTlsProblem(const std::string& address, const Credentials& credentials, absl::Duration limit) {
  const auto where = ParseHostPort(address);
  if (!where.ok()) return "";
  const int fd = Connect(*where, limit);
  if (fd < 0) return "";
  const absl::Cleanup close_fd = [fd] { close(fd); };
  const std::unique_ptr<SSL_CTX, decltype(&SSL_CTX_free)> context(SSL_CTX_new(TLS_client_method()), &SSL_CTX_free);
  if (context == nullptr) return "";
  if (credentials.has_tls()) {
    Credentials own = credentials;
    own.token.clear();  // SetUpTlsServer() then also sets the CA.
    if (!SetUpTlsServer(own, context.get())) return "";
  }
  const unsigned char protocol[] = {2, 'h', '2'};  // As gRPC's clients say.
  SSL_CTX_set_alpn_protos(context.get(), protocol, sizeof(protocol));
  const std::unique_ptr<SSL, decltype(&SSL_free)> connection(SSL_new(context.get()), &SSL_free);
  if (connection == nullptr || SSL_set_fd(connection.get(), fd) != 1) return "";
  const absl::Cleanup forget = [] { ERR_clear_error(); };
  ERR_clear_error();
  SSL_set_verify(connection.get(), SSL_VERIFY_NONE, nullptr);  // Goes on, so that the result can be told.
  int result = SSL_connect(connection.get());
  const bool accepted = credentials.has_tls() && SSL_get_verify_result(connection.get()) == X509_V_OK;
  if (result == 1 && accepted) {
    // With TLS 1.3 a server judges the client's certificate after the client's handshake: it then closes. Else gRPC's
    // server sends its settings first.
    char first = 0;
    result = SSL_read(connection.get(), &first, 1);
    if (result == 1) return "";
  }
  return Describe(connection.get(), result, credentials.has_tls());
}

}  // namespace skein
