// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace skein {

// Where to reach the learner: a learner on the coordinator's own host may be known there by a loopback address, which
// from elsewhere means the host under which the coordinator was reached.
std::string ReachableAddress(const std::string& learner_address, const std::string& coordinator_address);

}  // namespace skein
