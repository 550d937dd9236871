// SPDX-License-Identifier: Apache-2.0
#include "coordinator/saved_run.h"

#include <filesystem>

#include "base/process/file.h"
#include "coordinator/state_records.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/cli/scratch_folder.h"

namespace skein {
namespace {

using testing::HasSubstr;

constexpr uint64_t kNow = 1'700'000'000'000;

class SavedRunTest : public testing::Test {
 protected:
  StoreOptions InRunDirectory() const {
    StoreOptions options;
    options.run_directory = scratch_.path();
    return options;
  }
  std::string path() const { return scratch_.path() + "/coordinator/log"; }

  // A coordinator of `run` that has one member ends.
  void Leave(const std::string& run, uint64_t epoch) const {
    auto store = OpenStore(InRunDirectory());
    ASSERT_TRUE(store.ok()) << store.status();
    ASSERT_TRUE((*store)->Load().ok());
    store::RunRecord record;
    record.set_run_id(run);
    record.set_epoch(epoch);
    record.set_last_actor(3);
    Member member;
    member.id = "actor-3";
    ASSERT_TRUE((*store)->Write({PutRun(record), PutMember(member), PutProgress({})}).ok());
  }
  CoordinatorState::Options TakenOver(CoordinatorState::Options state) const {
    auto store = OpenStore(InRunDirectory());
    EXPECT_TRUE(store.ok()) << store.status();
    const absl::Status status = TakeOver(store->get(), kNow, &state);
    EXPECT_TRUE(status.ok()) << status;
    return state;
  }
  static CoordinatorState::Options Of(const std::string& run) {
    CoordinatorState::Options state;
    state.run_id = run;
    return state;
  }

  const ScratchFolder scratch_;
};

TEST_F(SavedRunTest, NothingIsKeptWithoutAPlaceOrIfToldSo) {
  EXPECT_EQ(*OpenStore(StoreOptions()), nullptr);
  StoreOptions none = InRunDirectory();
  none.url = "none";
  EXPECT_EQ(*OpenStore(none), nullptr);
  EXPECT_FALSE(std::filesystem::exists(scratch_.path() + "/coordinator"));
}

TEST_F(SavedRunTest, TheFirstCoordinatorFindsNothing) {
  const auto state = TakenOver(Of("run7"));
  EXPECT_FALSE(state.saved);
  EXPECT_EQ(state.start_epoch, kNow);
}

TEST_F(SavedRunTest, ASuccessorGoesOnWithTheRunThatIsThere) {
  Leave("run7", kNow - 5);
  for (const char* run : {"run7", ""}) {
    const auto state = TakenOver(Of(run));
    ASSERT_TRUE(state.saved);
    EXPECT_EQ(state.run_id, "run7");
    EXPECT_EQ(state.saved->members.size(), 1u);
    EXPECT_EQ(state.start_epoch, kNow - 5 + 1024);
  }
}

TEST_F(SavedRunTest, ANewSessionForgetsMembersAndProgressButNotItsGenerations) {
  Leave("run7", kNow + 5);
  CoordinatorState::Options options = Of("run7");
  options.new_session = true;
  const auto state = TakenOver(options);
  ASSERT_TRUE(state.saved);
  EXPECT_EQ(state.saved->members.size(), 0u);
  EXPECT_FALSE(state.saved->progress);
  EXPECT_EQ(state.saved->run.last_actor(), 3u);
  EXPECT_EQ(state.start_epoch, kNow + 5 + 1024);
}

TEST_F(SavedRunTest, AnotherRunsStateIsSetAside) {
  Leave("run6", kNow + 5);
  const auto state = TakenOver(Of("run7"));
  EXPECT_FALSE(state.saved);
  EXPECT_EQ(state.run_id, "run7");
  EXPECT_EQ(state.start_epoch, kNow + 5 + 1024);
  EXPECT_TRUE(std::filesystem::exists(path() + ".of_another_run"));
}

TEST_F(SavedRunTest, DamagedStateIsSetAsideAndTheRunGoesOnWithout) {
  Leave("run7", kNow);
  ASSERT_TRUE(WriteFileSynced(path(), "skein coordinator log 1\nand then something else").ok());
  EXPECT_FALSE(TakenOver(Of("run7")).saved);
  EXPECT_TRUE(std::filesystem::exists(path() + ".damaged"));
}

TEST_F(SavedRunTest, AFolderThatCannotBeMadeIsAnError) {
  StoreOptions options;
  options.run_directory = scratch_.Write("file", "");
  EXPECT_TRUE(absl::IsPermissionDenied(OpenStore(options).status()));
  options.url = options.run_directory + "/state";
  EXPECT_FALSE(OpenStore(options).ok());
}

TEST_F(SavedRunTest, ALinkInTheRunDirectoryIsNotFollowed) {
  const ScratchFolder elsewhere;
  const StoreOptions options = InRunDirectory();
  std::filesystem::create_directories(options.run_directory);
  std::filesystem::create_symlink(elsewhere.path(), options.run_directory + "/coordinator");
  const absl::Status status = OpenStore(options).status();
  EXPECT_TRUE(absl::IsPermissionDenied(status)) << status;
  EXPECT_THAT(std::string(status.message()), testing::HasSubstr("coordinator is a symbolic link"));
  EXPECT_TRUE(std::filesystem::is_empty(elsewhere.path()));
}

TEST_F(SavedRunTest, AFolderThatAnotherCoordinatorHasIsUnavailable) {
  StoreOptions options = InRunDirectory();
  const auto other = OpenStore(options);
  ASSERT_TRUE(other.ok()) << other.status();
  options.patience = absl::ZeroDuration();
  EXPECT_TRUE(absl::IsUnavailable(OpenStore(options).status()));
}

TEST_F(SavedRunTest, FlagsThatCannotBeAreRefused) {
  StoreOptions options;
  options.standby = true;
  EXPECT_THAT(std::string(ValidateStore(options).message()), HasSubstr("--standby: needs --store etcd://"));
  options.url = "etcd://node1/run";
  EXPECT_THAT(std::string(ValidateStore(options).message()), HasSubstr("--store: 'etcd://node1/run'"));
  options.url = "etcds://node1:2379/run";
  EXPECT_THAT(std::string(ValidateStore(options).message()), HasSubstr("etcds:// needs --tls-cert"));
  options.url = "etcd://node1:2379/run";
  EXPECT_TRUE(ValidateStore(options).ok());
}

}  // namespace
}  // namespace skein
