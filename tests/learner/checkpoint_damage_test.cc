// SPDX-License-Identifier: Apache-2.0
// Checkpoints whose files are damaged, missing, links or of another format.
#include <xxhash.h>

#include <filesystem>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/learner/checkpoint_fixture.h"

namespace skein {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;
using testing::SizeIs;

TEST_F(CheckpointTest, AFlippedByteInAnyFileIsFound) {
  const fs::path path = Save(SampleCheckpoint());
  for (const char* file : kCheckpointFiles) {
    const std::string good = Read(path / file);
    for (const size_t at : {size_t{0}, good.size() / 2, good.size() - 1}) {
      std::string bad = good;
      bad[at] ^= 1;
      Write(path / file, bad);
      // The checksum of the manifest is in DONE: which of the two is wrong cannot be told.
      ExpectDamaged(path, file == std::string("DONE") ? "manifest.json" : file);
    }
    Write(path / file, good);
  }
  EXPECT_TRUE(LoadCheckpoint(path).ok());
}

TEST_F(CheckpointTest, AShortLongOrMissingFileIsFound) {
  const fs::path path = Save(SampleCheckpoint());
  for (const char* file : kCheckpointFiles) {
    const std::string good = Read(path / file);
    const std::string named = file == std::string("DONE") ? "manifest.json" : file;
    Write(path / file, good.substr(0, good.size() - 1));
    ExpectDamaged(path, named);
    Write(path / file, "");
    ExpectDamaged(path, named);
    Write(path / file, good + "x");
    ExpectDamaged(path, named);
    fs::remove(path / file);
    ExpectDamaged(path, file);
    Write(path / file, good);
  }
  EXPECT_TRUE(LoadCheckpoint(path).ok());
}

TEST_F(CheckpointTest, MessageSaysHowManyBytesThereAre) {
  const fs::path path = Save(SampleCheckpoint());
  const size_t size = Read(path / "model.safetensors").size();
  fs::resize_file(path / "model.safetensors", 10);
  EXPECT_THAT(std::string(LoadCheckpoint(path).status().message()),
              HasSubstr(absl::StrCat("has 10 bytes, want ", size)));
}

TEST_F(CheckpointTest, RefusesSymlinksAndFoldersInPlaceOfFiles) {
  const fs::path path = Save(SampleCheckpoint());
  for (const char* file : kCheckpointFiles) {
    const fs::path outside = root_ / "outside";
    fs::rename(path / file, outside);
    fs::create_symlink(outside, path / file);
    ExpectDamaged(path, absl::StrCat(file, ": is not a regular file"));
    fs::remove(path / file);
    fs::create_directory(path / file);
    ExpectDamaged(path, absl::StrCat(file, ": is not a regular file"));
    fs::remove(path / file);
    fs::rename(outside, path / file);
  }
  EXPECT_TRUE(LoadCheckpoint(path).ok());
}

TEST_F(CheckpointTest, DamagedOnesAreSkippedWithAWarning) {
  Save(SampleCheckpoint(100));
  const fs::path middle = Save(SampleCheckpoint(200)), newest = Save(SampleCheckpoint(300));
  fs::remove(newest / "DONE");
  Write(middle / "optimizer.safetensors", "x");
  auto found = LoadNewestCheckpoint(folder_);
  ASSERT_TRUE(found.ok()) << found.status();
  EXPECT_EQ(found->checkpoint.env_steps, 100u);
  ASSERT_THAT(found->warnings, SizeIs(2));
  EXPECT_THAT(found->warnings[0], HasSubstr("step_000000000300/DONE"));
  EXPECT_THAT(found->warnings[1], HasSubstr("step_000000000200/optimizer.safetensors"));

  fs::remove(folder_ / "step_000000000100" / "manifest.json");
  found = LoadNewestCheckpoint(folder_);
  EXPECT_EQ(found.status().code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(std::string(found.status().message()), HasSubstr("step_000000000100"));
}

TEST_F(CheckpointTest, OneOfAnotherFormatIsRefusedInOneLineAndNotSkipped) {
  Save(SampleCheckpoint(100));
  const fs::path newest = Save(SampleCheckpoint(200));
  std::string manifest = Read(newest / "manifest.json");
  const size_t at = manifest.find("\"format\": 1");
  ASSERT_NE(at, std::string::npos);
  manifest.replace(at, 11, "\"format\": 2");
  Write(newest / "manifest.json", manifest);
  Write(newest / "DONE", absl::StrFormat("%016x\n", XXH3_64bits(manifest.data(), manifest.size())));
  for (const Damage damage : {Damage::kSkip, Damage::kRefuse}) {
    const absl::Status status = LoadNewestCheckpoint(folder_, damage).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
    EXPECT_THAT(
        std::string(status.message()),
        AllOf(HasSubstr("step_000000000200 has format 2, and this version reads format 1"), Not(HasSubstr("\n"))));
  }
  EXPECT_TRUE(LoadCheckpoint(folder_ / "step_000000000100").ok());
}

TEST_F(CheckpointTest, AFileTornAtAnyByteLeadsToTheOneBeforeAndNeverToAMixture) {
  Save(SampleCheckpoint(100));
  const fs::path newest = Save(SampleCheckpoint(200));
  for (const char* file : kCheckpointFiles) {
    const std::string whole = Read(newest / file);
    for (size_t size = 0; size < whole.size(); ++size) {
      const std::string zeros = whole.substr(0, size) + std::string(whole.size() - size, '\0');
      for (const std::string& torn : {whole.substr(0, size), zeros}) {
        if (torn == whole) continue;  // It ends with zeros.
        Write(newest / file, torn);
        const auto found = LoadNewestCheckpoint(folder_);
        ASSERT_TRUE(found.ok()) << found.status();
        ASSERT_EQ(found->checkpoint.env_steps, 100u) << file << " torn at " << size;
        ASSERT_THAT(found->warnings, ElementsAre(HasSubstr(newest.filename())));
      }
    }
    Write(newest / file, whole);
    EXPECT_EQ(LoadNewestCheckpoint(folder_)->checkpoint.env_steps, 200u);
  }
}

TEST_F(CheckpointTest, WhereDamageIsRefusedTheNewestMustBeWhole) {
  Save(SampleCheckpoint(100));
  const fs::path newest = Save(SampleCheckpoint(200));
  EXPECT_TRUE(LoadNewestCheckpoint(folder_, Damage::kRefuse).ok());
  Write(newest / "optimizer.safetensors", "x");
  const absl::Status refused = LoadNewestCheckpoint(folder_, Damage::kRefuse).status();
  EXPECT_EQ(refused.code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(std::string(refused.message()), HasSubstr("step_000000000200/optimizer.safetensors: has 1 bytes, want"));
}

TEST_F(CheckpointTest, ALinkInPlaceOfAFolderIsDamage) {
  Save(SampleCheckpoint(100));
  const fs::path newest = Save(SampleCheckpoint(200));
  fs::rename(newest, root_ / "elsewhere");
  fs::create_symlink(root_ / "elsewhere", newest);
  const auto found = LoadNewestCheckpoint(folder_);
  ASSERT_TRUE(found.ok()) << found.status();
  EXPECT_EQ(found->checkpoint.env_steps, 100u);
  ASSERT_THAT(found->warnings, SizeIs(1));
  EXPECT_THAT(found->warnings[0], HasSubstr("is a link"));
}

TEST_F(CheckpointTest, FilesOfImpossibleSizesAreNotRead) {
  const fs::path path = Save(SampleCheckpoint(100));
  fs::resize_file(path / "DONE", uint64_t{1} << 32);  // A hole: it takes no room.
  ExpectDamaged(path, "DONE: has 4294967296 bytes, want at most 64");
  fs::resize_file(path / "DONE", 17);
  EXPECT_TRUE(LoadCheckpoint(path).ok());
  fs::resize_file(path / "manifest.json", uint64_t{1} << 32);
  ExpectDamaged(path, "manifest.json: has 4294967296 bytes");
}

}  // namespace
}  // namespace skein
