// SPDX-License-Identifier: Apache-2.0
#include "tests/testing/history_check.h"

#include "absl/strings/str_join.h"
#include "gtest/gtest.h"

namespace skein {

std::vector<HistoryEvent> ReadHistory(const std::string& folder) {
  std::vector<HistoryEvent> history;
  const absl::Status status = ReadHistory(folder, [&](const HistoryEvent& event) { history.push_back(event); });
  EXPECT_TRUE(status.ok() || absl::IsNotFound(status)) << status;
  return history;
}

std::vector<std::string> Violations(const std::vector<HistoryEvent>& history) {
  HistoryChecker checker;
  for (const HistoryEvent& event : history) checker.See(event);
  return checker.breaches();
}

void ExpectInvariants(const std::vector<HistoryEvent>& history) {
  const std::vector<std::string> breaches = Violations(history);
  EXPECT_TRUE(breaches.empty()) << breaches.size() << " breaches in the history\n  " << absl::StrJoin(breaches, "\n  ");
}

}  // namespace skein
