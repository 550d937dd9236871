// SPDX-License-Identifier: Apache-2.0
#include "actor/reachable_address.h"

#include "base/net/host_port.h"

namespace skein {

std::string ReachableAddress(const std::string& learner_address, const std::string& coordinator_address) {
  const auto learner = ParseHostPort(learner_address);
  const auto coordinator = ParseHostPort(FirstAddress(coordinator_address));
  if (!learner.ok() || !coordinator.ok()) return learner_address;
  const bool local = learner->host.empty() || IsLoopback(learner->host);
  return local ? JoinHostPort(coordinator->host, learner->port) : learner_address;
}

std::string MetricsAddress(const std::string& listen, int port, const std::string& announce_host,
                           const std::string& coordinator_address) {
  if (!announce_host.empty()) return JoinHostPort(announce_host, port);
  const auto listening = ParseHostPort(listen);
  const auto coordinator = ParseHostPort(FirstAddress(coordinator_address));
  if (!listening.ok() || IsWildcard(listening->host)) return JoinHostPort("", port);
  if (IsLoopback(listening->host) && !(coordinator.ok() && IsLoopback(coordinator->host))) return "";
  return JoinHostPort(listening->host, port);
}

}  // namespace skein
