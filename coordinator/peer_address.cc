// SPDX-License-Identifier: Apache-2.0
#include "coordinator/peer_address.h"

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/strip.h"
#include "base/net/host_port.h"

namespace skein {

std::string HostOfPeer(const std::string& peer) {
  absl::string_view rest = peer;
  if (!absl::ConsumePrefix(&rest, "ipv4:") && !absl::ConsumePrefix(&rest, "ipv6:")) return "127.0.0.1";
  const std::string plain = absl::StrReplaceAll(rest, {{"%5B", "["}, {"%5D", "]"}, {"%5b", "["}, {"%5d", "]"}});
  absl::string_view host = plain;
  host = host.substr(0, host.rfind(':'));
  absl::ConsumePrefix(&host, "[");
  absl::ConsumeSuffix(&host, "]");
  absl::string_view mapped = host;
  if (absl::ConsumePrefix(&mapped, "::ffff:") && absl::StrContains(mapped, '.')) host = mapped;
  return std::string(host);
}

absl::StatusOr<std::string> CompleteAddress(const std::string& address, const std::string& host) {
  if (address.empty()) return address;
  absl::StatusOr<HostPort> parsed = ParseHostPort(address);
  if (!parsed.ok()) return parsed.status();
  if (parsed->port == 0) return absl::InvalidArgumentError(absl::StrCat("\"", address, "\" has port 0"));
  return JoinHostPort(IsWildcard(parsed->host) ? host : parsed->host, parsed->port);
}

std::string AddressOfPeer(const std::string& address, const std::string& peer_host) {
  const absl::StatusOr<HostPort> parsed = ParseHostPort(address);
  if (!parsed.ok() || IsLoopback(peer_host)) return address;
  return JoinHostPort(peer_host, parsed->port);
}

}  // namespace skein
