// SPDX-License-Identifier: Apache-2.0
#include "learner/run/checkpoint.h"

#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/learner/checkpoint_fixture.h"

namespace skein {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

void ExpectEqual(const Checkpoint& got, const Checkpoint& want) {
  EXPECT_EQ(got.env_steps, want.env_steps);
  EXPECT_EQ(got.iteration, want.iteration);
  EXPECT_EQ(got.episodes, want.episodes);
  EXPECT_EQ(got.env_id, want.env_id);
  EXPECT_EQ(got.config_yaml, want.config_yaml);
  EXPECT_EQ(got.counters, want.counters);
  EXPECT_EQ(got.changes_json, want.changes_json);
  EXPECT_EQ(got.last_episodes.returns, want.last_episodes.returns);
  EXPECT_EQ(got.last_episodes.lengths, want.last_episodes.lengths);
  ASSERT_EQ(got.last_episodes.metrics.size(), want.last_episodes.metrics.size());
  for (size_t i = 0; i < want.last_episodes.metrics.size(); ++i) {
    const float x = got.last_episodes.metrics[i], y = want.last_episodes.metrics[i];
    EXPECT_TRUE(x == y || (std::isnan(x) && std::isnan(y))) << i;
  }
  EXPECT_EQ(CheckpointDigest(got), CheckpointDigest(want));
  for (const auto& [x, y] : {std::pair(&got.model, &want.model), std::pair(&got.optimizer, &want.optimizer),
                             std::pair(&got.state, &want.state)}) {
    ASSERT_EQ(x->size(), y->size());
    for (size_t i = 0; i < x->size(); ++i) {
      EXPECT_EQ((*x)[i].SerializeAsString(), (*y)[i].SerializeAsString()) << (*x)[i].name();
    }
  }
}

TEST_F(CheckpointTest, ComesBackEqual) {
  const std::string path = Save(SampleCheckpoint());
  EXPECT_EQ(path, folder_ / "step_000000012345");
  const auto loaded = LoadCheckpoint(path);
  ASSERT_TRUE(loaded.ok()) << loaded.status();
  ExpectEqual(*loaded, SampleCheckpoint());
  EXPECT_THAT(Names(), ElementsAre("latest", "step_000000012345"));
  for (const char* file : kCheckpointFiles) EXPECT_TRUE(fs::is_regular_file(fs::path(path) / file)) << file;
  EXPECT_THAT(Read(fs::path(path) / "manifest.json"), HasSubstr(CheckpointDigest(SampleCheckpoint())));
}

TEST_F(CheckpointTest, LatestLeadsToTheNewest) {
  Save(SampleCheckpoint(100));
  Save(SampleCheckpoint(200));
  EXPECT_EQ(fs::read_symlink(folder_ / "latest"), "step_000000000200");
  const auto loaded = LoadCheckpoint(folder_ / "latest");
  ASSERT_TRUE(loaded.ok()) << loaded.status();
  EXPECT_EQ(loaded->env_steps, 200u);
}

TEST_F(CheckpointTest, EmptyTensorListsAreFine) {
  Checkpoint empty;
  const auto loaded = LoadCheckpoint(Save(empty));
  ASSERT_TRUE(loaded.ok()) << loaded.status();
  ExpectEqual(*loaded, empty);
}

TEST_F(CheckpointTest, TellsWhereThereIsNoCheckpoint) {
  EXPECT_EQ(LoadCheckpoint(folder_ / "step_1").status().code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(LoadNewestCheckpoint(folder_).status().code(), absl::StatusCode::kNotFound);
  fs::create_directories(folder_);
  EXPECT_EQ(LoadNewestCheckpoint(folder_).status().code(), absl::StatusCode::kNotFound);
  const auto loaded = LoadCheckpoint(folder_);
  EXPECT_EQ(loaded.status().code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(loaded.status().message()), HasSubstr("manifest.json"));
  Write(folder_ / "file", "");
  EXPECT_EQ(LoadCheckpoint(folder_ / "file").status().code(), absl::StatusCode::kNotFound);
}

TEST_F(CheckpointTest, NewestIsByStepNumber) {
  Save(SampleCheckpoint(1000));
  Save(SampleCheckpoint(2000000000000));  // Thirteen digits: sorts before the other as text.
  Save(SampleCheckpoint(999));
  const auto found = LoadNewestCheckpoint(folder_);
  ASSERT_TRUE(found.ok()) << found.status();
  EXPECT_EQ(found->checkpoint.env_steps, 2000000000000u);
  EXPECT_EQ(found->path, folder_ / "step_2000000000000");
  EXPECT_THAT(found->warnings, IsEmpty());
}

// What a loss of power may leave of a file whose last blocks were not written: its beginning, then nothing or zeros.
TEST_F(CheckpointTest, NothingIsWrittenThroughALink) {
  const fs::path elsewhere = root_ / "elsewhere";
  fs::create_directories(elsewhere);
  fs::create_directories(folder_.parent_path());
  fs::create_directory_symlink(elsewhere, folder_);
  const absl::Status saved = SaveCheckpoint(folder_, SampleCheckpoint(100), 3).status();
  EXPECT_EQ(saved.code(), absl::StatusCode::kPermissionDenied) << saved;
  EXPECT_THAT(std::string(saved.message()), HasSubstr("checkpoints is a symbolic link"));
  EXPECT_EQ(LoadNewestCheckpoint(folder_).status().code(), absl::StatusCode::kPermissionDenied);
  EXPECT_TRUE(fs::is_empty(elsewhere));
  fs::remove(folder_);
  // Links in place of what a checkpoint makes are replaced, and removed where checkpoints are pruned.
  Write(elsewhere / "precious", "old");
  fs::create_directories(folder_);
  fs::create_symlink(elsewhere, folder_ / absl::StrCat(".tmp-step_000000000100-", ::getpid()));
  fs::create_symlink(elsewhere, folder_ / "step_000000000050");
  fs::create_symlink(elsewhere / "precious", folder_ / "step_000000000100");
  fs::create_symlink(elsewhere, folder_ / "latest");
  Save(SampleCheckpoint(100), 1);
  EXPECT_THAT(Names(), ElementsAre("latest", "step_000000000100"));
  EXPECT_EQ(LoadCheckpoint(folder_ / "latest")->env_steps, 100u);
  EXPECT_EQ(Read(elsewhere / "precious"), "old");
}

TEST_F(CheckpointTest, LeftoversOfInterruptedWritesAreRemoved) {
  Save(SampleCheckpoint(100));
  fs::create_directory(folder_ / ".tmp-step_000000000200-1");
  Write(folder_ / ".tmp-step_000000000200-1" / "model.safetensors", "half");
  fs::create_symlink("nowhere", folder_ / ".tmp-latest-1");
  Write(folder_ / "notes.txt", "not ours");
  ASSERT_TRUE(LoadNewestCheckpoint(folder_).ok());
  EXPECT_THAT(Names(), ElementsAre("latest", "notes.txt", "step_000000000100"));
}

TEST_F(CheckpointTest, KeepsTheNewest) {
  for (const uint64_t steps : {100, 200, 300, 400}) Save(SampleCheckpoint(steps), 2);
  EXPECT_THAT(Names(), ElementsAre("latest", "step_000000000300", "step_000000000400"));
}

TEST_F(CheckpointTest, OnesOfLaterStepsDoNotPushOutWhatWasJustWritten) {
  const fs::path damaged = Save(SampleCheckpoint(500));
  fs::remove(damaged / "DONE");
  Save(SampleCheckpoint(300), 1);
  Save(SampleCheckpoint(400), 1);
  EXPECT_THAT(Names(), ElementsAre("latest", "step_000000000400", "step_000000000500"));
  EXPECT_EQ(LoadNewestCheckpoint(folder_)->checkpoint.env_steps, 400u);
}

TEST_F(CheckpointTest, ASecondOfTheSameStepTakesThePlaceOfTheFirst) {
  Save(SampleCheckpoint(100));
  Checkpoint other = SampleCheckpoint(100);
  other.iteration = 8;
  Save(other);
  EXPECT_THAT(Names(), ElementsAre("latest", "step_000000000100"));
  EXPECT_EQ(LoadCheckpoint(folder_ / "latest")->iteration, 8u);
}

TEST_F(CheckpointTest, FolderThatCannotBeMadeIsNamed) {
  fs::create_directories(root_);
  Write(root_ / "runs", "a file where a folder should be");
  const auto saved = SaveCheckpoint(folder_, SampleCheckpoint(), 3);
  EXPECT_FALSE(saved.ok());
  EXPECT_THAT(std::string(saved.status().message()), HasSubstr(folder_.string()));
  EXPECT_FALSE(LoadNewestCheckpoint(folder_).ok());
}

TEST_F(CheckpointTest, AFolderWithoutPermissionIsPermissionDenied) {
  fs::create_directories(folder_);
  fs::permissions(folder_, fs::perms::owner_read | fs::perms::owner_exec | fs::perms::others_exec);
  // Root may write anywhere: be nobody meanwhile.
  const uid_t user = ::geteuid();
  if (user == 0 && ::seteuid(65534) != 0) GTEST_SKIP() << "cannot give up root";
  const auto saved = SaveCheckpoint(folder_, SampleCheckpoint(), 3);
  ASSERT_EQ(::seteuid(user), 0);
  EXPECT_EQ(saved.status().code(), absl::StatusCode::kPermissionDenied) << saved.status();
  fs::permissions(folder_, fs::perms::owner_all);
}

// The largest size of a file stands in for the disk's: writing stops in the middle of one.
TEST_F(CheckpointTest, AWriteThatFailsHalfwayLeavesTheOlderOnesAndNothingElse) {
  Save(SampleCheckpoint(100));
  const std::vector<std::string> before = Names();
  rlimit old_limit;
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &old_limit), 0);
  const auto old_handler = ::signal(SIGXFSZ, SIG_IGN);
  for (const rlim_t bytes : {0, 10, 300}) {
    const rlimit limit{bytes, old_limit.rlim_max};
    ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &limit), 0);
    const auto saved = SaveCheckpoint(folder_, SampleCheckpoint(200), 1);
    ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &old_limit), 0);
    EXPECT_FALSE(saved.ok());
    EXPECT_THAT(std::string(saved.status().message()), HasSubstr("step_000000000200"));
    EXPECT_EQ(Names(), before);
    EXPECT_EQ(LoadNewestCheckpoint(folder_)->checkpoint.env_steps, 100u);
  }
  ::signal(SIGXFSZ, old_handler);
}

TEST_F(CheckpointTest, LatestThatCannotBeMovedIsNamed) {
  fs::create_directories(folder_ / "latest" / "something");
  const auto saved = SaveCheckpoint(folder_, SampleCheckpoint(), 3);
  EXPECT_FALSE(saved.ok());
  EXPECT_THAT(std::string(saved.status().message()), HasSubstr("latest"));
  // The checkpoint itself was complete by then.
  EXPECT_TRUE(LoadNewestCheckpoint(folder_).ok());
}

TEST_F(CheckpointTest, TextThatIsNotUtf8IsRefused) {
  Checkpoint checkpoint = SampleCheckpoint();
  checkpoint.config_yaml = "\xff";
  EXPECT_EQ(SaveCheckpoint(folder_, checkpoint, 3).status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_FALSE(fs::exists(folder_));
}

TEST(CheckpointDigest, IsEqualForEqualRunsAndDiffersOtherwise) {
  const std::string digest = CheckpointDigest(SampleCheckpoint());
  EXPECT_THAT(digest, SizeIs(16));
  EXPECT_EQ(CheckpointDigest(SampleCheckpoint()), digest);
  Checkpoint other = SampleCheckpoint();
  other.counters = {};  // Not part of it: counters tell how the data came, not what was learned.
  other.config_yaml = "";
  EXPECT_EQ(CheckpointDigest(other), digest);

  const auto differs = [&](auto change) {
    Checkpoint changed = SampleCheckpoint();
    change(changed);
    EXPECT_NE(CheckpointDigest(changed), digest);
  };
  differs([](Checkpoint& c) { c.env_steps += 1; });
  differs([](Checkpoint& c) { c.iteration += 1; });
  differs([](Checkpoint& c) { (*c.model[0].mutable_data())[20] ^= 1; });
  differs([](Checkpoint& c) { c.model[0].set_name("policy.1.weight"); });
  differs([](Checkpoint& c) { c.optimizer.pop_back(); });
  differs([](Checkpoint& c) { c.state[0].set_data(std::string(5, 0)); });
}

}  // namespace
}  // namespace skein
