// SPDX-License-Identifier: Apache-2.0
#include "base/net/host_port.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <memory>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/process/message_text.h"

namespace skein {
namespace {

absl::Status BadAddress(const std::string& address, const std::string& why) {
  return absl::InvalidArgumentError(absl::StrCat("address ", Quoted(address), ": ", why));
}

// The errno of listening on `address`, or 0.
int TryListen(const addrinfo& address) {
  const int fd = socket(address.ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return errno;
  const int on = 1;
  setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
  int error = 0;
  if (bind(fd, address.ai_addr, address.ai_addrlen) != 0 || listen(fd, 1) != 0) error = errno;
  close(fd);
  return error;
}

}  // namespace

absl::StatusOr<HostPort> ParseHostPort(const std::string& address) {
  const size_t colon = address.rfind(':');
  if (colon == std::string::npos) return BadAddress(address, "expected host:port");
  HostPort result;
  result.host = address.substr(0, colon);
  if (!result.host.empty() && result.host.front() == '[') {
    if (result.host.back() != ']') return BadAddress(address, "'[' without ']:port'");
    result.host = result.host.substr(1, result.host.size() - 2);
    if (result.host.empty()) return BadAddress(address, "nothing between the brackets");
  } else if (result.host.find(':') != std::string::npos) {
    return BadAddress(address, "an IPv6 address is written [address]:port");
  }
  for (const unsigned char c : result.host) {
    if (!absl::ascii_isgraph(c) || c == '/' || c == '[' || c == ']') {
      return BadAddress(address, "the host has a character that no host name has");
    }
  }
  const std::string port = address.substr(colon + 1);
  const bool digits = port.find_first_not_of("0123456789") == std::string::npos;
  if (port.empty() || !digits || !absl::SimpleAtoi(port, &result.port) || result.port > 65535) {
    return BadAddress(address, absl::StrCat("port ", Quoted(port), " is not a number from 0 to 65535"));
  }
  return result;
}

absl::StatusOr<std::vector<std::string>> ParseAddresses(const std::string& list) {
  std::vector<std::string> addresses = absl::StrSplit(list, ',');
  for (const std::string& address : addresses) {
    absl::StatusOr<HostPort> parsed = ParseHostPort(address);
    if (!parsed.ok()) return parsed.status();
    if (parsed->host.empty() || parsed->port == 0) return BadAddress(address, "expected host:port");
  }
  return addresses;
}

std::string FirstAddress(const std::string& list) { return list.substr(0, list.find(',')); }

std::string JoinHostPort(const std::string& host, int port) {
  const bool is_v6 = host.find(':') != std::string::npos;
  return is_v6 ? absl::StrCat("[", host, "]:", port) : absl::StrCat(host, ":", port);
}

bool IsLoopback(const std::string& host) {
  in_addr v4 = {};  // A name may begin with 127, too.
  if (inet_pton(AF_INET, host.c_str(), &v4) == 1) return ntohl(v4.s_addr) >> 24 == 127;
  return host == "localhost" || host == "::1";
}

bool IsWildcard(const std::string& host) { return host.empty() || host == "0.0.0.0" || host == "::" || host == "[::]"; }

absl::Status CheckCanListen(const HostPort& address) {
  const std::string name = JoinHostPort(address.host, address.port);
  addrinfo hints = {};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_PASSIVE | AI_NUMERICSERV;
  addrinfo* found = nullptr;
  const int code = getaddrinfo(address.host.empty() ? nullptr : address.host.c_str(),
                               std::to_string(address.port).c_str(), &hints, &found);
  if (code != 0) {
    return absl::UnavailableError(absl::StrCat("cannot listen on ", name, ": ", gai_strerror(code)));
  }
  const std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> owner(found, &freeaddrinfo);
  bool any = false;
  int error = 0;
  for (const addrinfo* one = found; one != nullptr; one = one->ai_next) {
    const int failed = TryListen(*one);
    if (failed == EADDRINUSE) {
      return absl::UnavailableError(
          absl::StrCat("cannot listen on ", name, ": port ", address.port, " is in use; choose another or port 0"));
    }
    if (failed == 0) any = true;
    if (failed != 0) error = failed;
  }
  if (any) return absl::OkStatus();
  return absl::UnavailableError(absl::StrCat("cannot listen on ", name, ": ", strerror(error)));
}

}  // namespace skein
