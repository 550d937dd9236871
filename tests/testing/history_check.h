// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "cli/history_check.h"

// What `skein check-history` finds, for tests.
namespace skein {

// Of all processes that recorded into `folder`, in order of time; none if there is no history. A line which is neither
// cut off nor an event fails the running test.
std::vector<HistoryEvent> ReadHistory(const std::string& folder);

// HistoryChecker's breaches.
std::vector<std::string> Violations(const std::vector<HistoryEvent>& history);

// Fails the running test with the breaches, if there are any.
void ExpectInvariants(const std::vector<HistoryEvent>& history);

}  // namespace skein
