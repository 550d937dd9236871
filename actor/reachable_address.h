// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace skein {

// The address at which to reach the learner. A learner on the coordinator's host may be known there by a loopback
// address; on other hosts that means the host at which the coordinator was reached.
std::string ReachableAddress(const std::string& learner_address, const std::string& coordinator_address);

// The address of /metrics for a join request, given the requested host:port and the actual port. Without a host the
// coordinator fills in the one it sees. Empty: /metrics is served on the loopback only, and the coordinator, or
// Prometheus beside it, may be on another machine.
std::string MetricsAddress(const std::string& listen, int port, const std::string& announce_host,
                           const std::string& coordinator_address);

}  // namespace skein
