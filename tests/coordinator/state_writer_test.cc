// SPDX-License-Identifier: Apache-2.0
#include "coordinator/state_writer.h"

#include "absl/synchronization/notification.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace skein {
namespace {

using testing::ElementsAre;

// Remembers what was written; each status that is not OK is given once.
class FakeStore final : public StateStore {
 public:
  absl::StatusOr<std::map<std::string, std::string>> Load() override { return records_; }
  absl::Status Write(const std::vector<StateChange>& changes) override {
    if (!errors_.empty()) {
      const absl::Status error = errors_.front();
      errors_.erase(errors_.begin());
      return error;
    }
    for (const StateChange& change : changes) {
      if (change.value) {
        records_[change.key] = *change.value;
      } else {
        records_.erase(change.key);
      }
    }
    return absl::OkStatus();
  }

  std::vector<absl::Status> errors_;
  std::map<std::string, std::string> records_;
};

TEST(StateWriter, WritesWhatIsAddedAndThenSaysSo) {
  FakeStore store;
  StateWriter writer(&store, {});
  absl::Notification done;
  writer.Add({{"a", "1"}, {"b", "2"}}, [] {});
  writer.Add({{"a", "3"}, {"b", std::nullopt}}, [&] { done.Notify(); });
  done.WaitForNotification();
  EXPECT_EQ(store.records_, (std::map<std::string, std::string>{{"a", "3"}}));
}

TEST(StateWriter, ADiskThatRefusesHoldsNobodyUpAndIsTriedAgain) {
  FakeStore store;
  store.errors_ = {absl::ResourceExhaustedError("full")};
  std::vector<absl::Status> results;
  StateWriter writer(&store, [&](const absl::Status& status) { results.push_back(status); });
  absl::Notification first, second;
  writer.Add({{"a", "1"}}, [&] { first.Notify(); });
  first.WaitForNotification();
  writer.Add({{"b", "2"}}, [&] { second.Notify(); });
  second.WaitForNotification();
  EXPECT_EQ(store.records_, (std::map<std::string, std::string>{{"a", "1"}, {"b", "2"}}));
  EXPECT_THAT(results, ElementsAre(absl::ResourceExhaustedError("full"), absl::OkStatus()));
}

TEST(StateWriter, AStoreThatDoesNotAnswerIsWaitedFor) {
  FakeStore store;
  store.errors_ = {absl::UnavailableError("away")};
  StateWriter writer(&store, {}, absl::Milliseconds(10));
  absl::Notification first, second;
  writer.Add({{"a", "1"}}, [&] {
    EXPECT_EQ(store.records_.count("a"), 1u);
    first.Notify();
  });
  writer.Add({{"b", "2"}}, [&] { second.Notify(); });
  first.WaitForNotification();
  second.WaitForNotification();
}

TEST(StateWriter, StopWritesWhatIsLeftAndLaterOnesAreToldAtOnce) {
  FakeStore store;
  store.errors_ = {absl::UnavailableError("away"), absl::UnavailableError("away")};
  StateWriter writer(&store, {});
  bool first = false, second = false;
  writer.Add({{"a", "1"}}, [&] { first = true; });
  writer.Stop();
  EXPECT_TRUE(first);
  writer.Add({{"b", "2"}}, [&] { second = true; });
  EXPECT_TRUE(second);
}

}  // namespace
}  // namespace skein
