// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace skein {

// Where to reach the learner: a learner on the coordinator's own host may be known there by a loopback address, which
// from elsewhere means the host under which the coordinator was reached.
std::string ReachableAddress(const std::string& learner_address, const std::string& coordinator_address);

// The address of /metrics for a join request, given where it is served (host:port asked for, port got). Without a host
// the coordinator fills in the one it sees. Empty: it is served on the loopback only, and the coordinator, or
// Prometheus beside it, may be on another machine.
std::string MetricsAddress(const std::string& listen, int port, const std::string& announce_host,
                           const std::string& coordinator_address);

}  // namespace skein
