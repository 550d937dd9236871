// SPDX-License-Identifier: Apache-2.0
#include "actor/reachable_address.h"

#include "absl/strings/match.h"
#include "base/host_port.h"

namespace skein {

std::string ReachableAddress(const std::string& learner_address, const std::string& coordinator_address) {
  const auto learner = ParseHostPort(learner_address);
  const auto coordinator = ParseHostPort(coordinator_address);
  if (!learner.ok() || !coordinator.ok()) return learner_address;
  const bool local = learner->host.empty() || learner->host == "localhost" || learner->host == "::1" ||
                     absl::StartsWith(learner->host, "127.");
  return local ? JoinHostPort(coordinator->host, learner->port) : learner_address;
}

}  // namespace skein
