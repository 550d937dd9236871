// SPDX-License-Identifier: Apache-2.0
#include "base/net/stream_counts.h"

#include <netinet/in.h>
#include <sys/socket.h>

#include <cstring>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/numbers.h"
#include "grpc/grpc.h"
#include "grpc/support/alloc.h"
#include "nlohmann/json.hpp"

namespace skein {
namespace {

using nlohmann::json;

// Takes ownership of one of channelz's answers. An object without members: there is no answer.
json Parse(char* text) {
  if (text == nullptr) return json::object();
  json parsed = json::parse(text, nullptr, /*allow_exceptions=*/false);
  gpr_free(text);
  return parsed.is_object() ? parsed : json::object();
}

json Member(const json& object, const char* name) {
  const auto found = object.find(name);
  return found == object.end() ? json() : *found;
}

// Channelz leaves out zeros and writes 64-bit numbers as text.
int64_t Number(const json& object, const char* name) {
  const json value = Member(object, name);
  int64_t number = 0;
  if (value.is_number_integer()) return value.get<int64_t>();
  if (value.is_string() && !absl::SimpleAtoi(value.get<std::string>(), &number)) return 0;
  return number;
}

std::string AddressBytes(const sockaddr_storage& address) {
  if (address.ss_family == AF_INET) {
    return {reinterpret_cast<const char*>(&reinterpret_cast<const sockaddr_in&>(address).sin_addr), 4};
  }
  const in6_addr& ip = reinterpret_cast<const sockaddr_in6&>(address).sin6_addr;
  const auto* const bytes = reinterpret_cast<const char*>(&ip);
  if (IN6_IS_ADDR_V4MAPPED(&ip)) return {bytes + 12, 4};
  return {bytes, 16};
}

int PortOf(const sockaddr_storage& address) {
  return ntohs(address.ss_family == AF_INET ? reinterpret_cast<const sockaddr_in&>(address).sin_port
                                            : reinterpret_cast<const sockaddr_in6&>(address).sin6_port);
}

bool IsInternet(const sockaddr_storage& address) {
  return address.ss_family == AF_INET || address.ss_family == AF_INET6;
}

std::optional<ConnectionName> NameIn(const json& socket) {
  const json local = Member(Member(socket, "local"), "tcpip_address");
  const json remote = Member(Member(socket, "remote"), "tcpip_address");
  const json address = Member(remote, "ip_address");
  if (!local.is_object() || !address.is_string()) return std::nullopt;
  ConnectionName name;
  if (!absl::Base64Unescape(address.get<std::string>(), &name.peer_address)) return std::nullopt;
  name.local_port = static_cast<int>(Number(local, "port"));
  name.peer_port = static_cast<int>(Number(remote, "port"));
  return name;
}

}  // namespace

std::string SiteOf(const std::string& address) { return address.size() == 16 ? address.substr(0, 8) : address; }

std::optional<ConnectionName> NameOfConnection(int socket) {
  sockaddr_storage local = {}, peer = {};
  socklen_t local_size = sizeof(local), peer_size = sizeof(peer);
  if (getsockname(socket, reinterpret_cast<sockaddr*>(&local), &local_size) != 0 ||
      getpeername(socket, reinterpret_cast<sockaddr*>(&peer), &peer_size) != 0 || !IsInternet(local) ||
      !IsInternet(peer)) {
    return std::nullopt;
  }
  return ConnectionName{PortOf(local), AddressBytes(peer), PortOf(peer)};
}

std::optional<StreamCounts::Counts> StreamCounts::Of(const ConnectionName& name) {
  for (int attempt = 0; attempt < 2; ++attempt) {
    if (const auto found = known_.find(name); found != known_.end()) {
      const json socket = Member(Parse(grpc_channelz_get_socket(found->second.socket)), "socket");
      if (socket.is_object() && NameIn(socket) == name) {
        const json data = Member(socket, "data");
        return Counts{Number(data, "streamsStarted"), Number(data, "streamsSucceeded"), Number(data, "streamsFailed"),
                      Number(data, "messagesSent") + Number(data, "messagesReceived")};
      }
    }
    if (attempt == 0) Learn();
  }
  return std::nullopt;
}

void StreamCounts::Learn() {
  for (auto& [name, known] : known_) known.seen = false;
  for (int64_t next = 0;;) {
    const json servers = Member(Parse(grpc_channelz_get_servers(next)), "server");
    if (!servers.is_array() || servers.empty()) break;
    for (const json& server : servers) {
      const int64_t id = Number(Member(server, "ref"), "serverId");
      LearnSocketsOf(id);
      next = id + 1;
    }
  }
  for (auto it = known_.begin(); it != known_.end();) {
    if (it->second.seen) {
      ++it;
      continue;
    }
    names_.erase(it->second.socket);
    it = known_.erase(it);
  }
}

void StreamCounts::LearnSocketsOf(int64_t server) {
  for (int64_t next = 0;;) {
    const json sockets = Member(Parse(grpc_channelz_get_server_sockets(server, next, 0)), "socketRef");
    if (!sockets.is_array() || sockets.empty()) return;
    for (const json& reference : sockets) {
      const int64_t id = Number(reference, "socketId");
      next = id + 1;
      auto named = names_.find(id);
      if (named == names_.end()) {
        const auto name = NameIn(Member(Parse(grpc_channelz_get_socket(id)), "socket"));
        if (!name.has_value()) continue;
        // A later connection may have an earlier one's name.
        if (const auto before = known_.find(*name); before != known_.end()) names_.erase(before->second.socket);
        named = names_.emplace(id, *name).first;
        known_[*name].socket = id;
      }
      known_[named->second].seen = true;
    }
  }
}

}  // namespace skein
