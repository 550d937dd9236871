// SPDX-License-Identifier: Apache-2.0
#include "tests/testing/http_get.h"

#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <sstream>

#include "tests/testing/loopback.h"

namespace skein {

HttpReply HttpGet(int port, const std::string& path, const std::string& headers) {
  HttpReply reply;
  const int fd = ConnectTo(port);
  if (fd < 0) return reply;
  const std::string request =
      "GET " + path + " HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n" + headers + "\r\n";
  std::string text;
  if (send(fd, request.data(), request.size(), MSG_NOSIGNAL) == static_cast<ssize_t>(request.size())) {
    char buffer[4096];
    ssize_t got;
    while ((got = recv(fd, buffer, sizeof(buffer), 0)) > 0) text.append(buffer, got);
  }
  close(fd);
  const size_t end = text.find("\r\n\r\n");
  if (end == std::string::npos) return reply;
  std::sscanf(text.c_str(), "HTTP/1.1 %d", &reply.status);
  reply.body = text.substr(end + 4);
  const std::string key = "Content-Type: ";
  const size_t at = text.find(key);
  if (at < end) reply.content_type = text.substr(at + key.size(), text.find("\r\n", at) - at - key.size());
  return reply;
}

int RunWithInput(const std::string& command, const std::string& input, std::string* output) {
  char path[] = "/tmp/skein-test-XXXXXX";
  const int fd = mkstemp(path);
  if (fd < 0) return -1;
  close(fd);
  std::ofstream(path) << input;
  FILE* pipe = popen((command + " < " + path + " 2>&1").c_str(), "r");
  if (pipe == nullptr) return -1;
  char buffer[4096];
  size_t got;
  while ((got = fread(buffer, 1, sizeof(buffer), pipe)) > 0) output->append(buffer, got);
  const int code = pclose(pipe);
  unlink(path);
  return WIFEXITED(code) ? WEXITSTATUS(code) : -1;
}

}  // namespace skein
