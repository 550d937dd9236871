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
  absl::StatusOr<std::string> SetAside(const std::string&) override { return absl::UnimplementedError(""); }

  std::vector<absl::Status> errors_;
  std::map<std::string, std::string> records_;
};

TEST(StateWriter, WritesWhatIsAddedAndThenSaysSo) {
  FakeStore store;
  StateWriter writer(&store, {});
  absl::Notification done;
  writer.Add({{"a", "1"}, {"b", "2"}}, [](const absl::Status&) {});
  writer.Add({{"a", "3"}, {"b", std::nullopt}}, [&](const absl::Status& written) {
    EXPECT_TRUE(written.ok()) << written;
    done.Notify();
  });
  done.WaitForNotification();
  EXPECT_EQ(store.records_, (std::map<std::string, std::string>{{"a", "3"}}));
}

TEST(StateWriter, ADiskThatRefusesHoldsNobodyUpAndIsTriedAgain) {
  FakeStore store;
  store.errors_ = {absl::ResourceExhaustedError("full")};
  std::vector<absl::Status> results;
  StateWriter writer(&store, [&](const absl::Status& status) { results.push_back(status); });
  absl::Notification first, second;
  writer.Add({{"a", "1"}}, [&](const absl::Status& written) {
    EXPECT_TRUE(absl::IsResourceExhausted(written)) << written;
    first.Notify();
  });
  first.WaitForNotification();
  writer.Add({{"b", "2"}}, [&](const absl::Status& written) {
    EXPECT_TRUE(written.ok()) << written;
    second.Notify();
  });
  second.WaitForNotification();
  EXPECT_EQ(store.records_, (std::map<std::string, std::string>{{"a", "1"}, {"b", "2"}}));
  EXPECT_THAT(results, ElementsAre(absl::ResourceExhaustedError("full"), absl::OkStatus()));
}

TEST(StateWriter, AStoreThatDoesNotAnswerIsWaitedFor) {
  FakeStore store;
  store.errors_ = {absl::UnavailableError("away")};
  StateWriter writer(&store, {}, absl::Milliseconds(10));
  absl::Notification first, second;
  writer.Add({{"a", "1"}}, [&](const absl::Status& written) {
    EXPECT_TRUE(written.ok()) << written;
    EXPECT_EQ(store.records_.count("a"), 1u);
    first.Notify();
  });
  writer.Add({{"b", "2"}}, [&](const absl::Status&) { second.Notify(); });
  first.WaitForNotification();
  second.WaitForNotification();
}

TEST(StateWriter, StopWritesWhatIsLeftAndLaterOnesAreToldAtOnce) {
  FakeStore store;
  store.errors_ = {absl::UnavailableError("away"), absl::UnavailableError("away")};
  StateWriter writer(&store, {});
  absl::Status first, second;
  writer.Add({{"a", "1"}}, [&](const absl::Status& written) { first = written; });
  writer.Stop();
  EXPECT_TRUE(absl::IsUnavailable(first)) << first;
  writer.Add({{"b", "2"}}, [&](const absl::Status& written) { second = written; });
  EXPECT_TRUE(absl::IsUnavailable(second)) << second;
}

TEST(StateWriter, WhoMayNotWriteAnyMoreSaysSo) {
  FakeStore store;
  store.errors_ = {absl::AbortedError("another one"), absl::AbortedError("another one")};
  StateWriter writer(&store, {});
  absl::Notification first, second;
  writer.Add({{"a", "1"}}, [&](const absl::Status& written) {
    EXPECT_TRUE(absl::IsAborted(written)) << written;
    first.Notify();
  });
  first.WaitForNotification();
  writer.Add({}, [&](const absl::Status& written) {  // Of the call before, too.
    EXPECT_TRUE(absl::IsAborted(written)) << written;
    second.Notify();
  });
  second.WaitForNotification();
}

}  // namespace
}  // namespace skein
