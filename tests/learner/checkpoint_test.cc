// SPDX-License-Identifier: Apache-2.0
#include "learner/run/checkpoint.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>
#include <xxhash.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <limits>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace skein {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;

constexpr const char* kFiles[] = {"DONE", "manifest.json", "model.safetensors", "optimizer.safetensors",
                                  "state.safetensors"};

std::string Read(const fs::path& path) {
  std::ifstream stream(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), {}};
}

void Write(const fs::path& path, const std::string& contents) {
  std::ofstream(path, std::ios::binary | std::ios::trunc) << contents;
}

template <typename Value>
v1::Tensor Make(const std::string& name, v1::DataType dtype, const std::vector<int64_t>& shape,
                const std::vector<Value>& values) {
  v1::Tensor tensor;
  tensor.set_name(name);
  tensor.set_dtype(dtype);
  tensor.mutable_shape()->Assign(shape.begin(), shape.end());
  tensor.set_data(values.data(), values.size() * sizeof(Value));
  return tensor;
}

Checkpoint Sample(uint64_t env_steps = 12345) {
  Checkpoint checkpoint;
  checkpoint.env_steps = env_steps;
  checkpoint.iteration = 7;
  checkpoint.episodes = 42;
  checkpoint.env_id = "CartPole-v1";
  checkpoint.config_yaml = "seed: 1\nenv:\n  id: \"CartPole-v1\"\n";
  checkpoint.model = {Make<float>("policy.0.weight", v1::DATA_TYPE_FLOAT32, {2, 3}, {0, 1, 2, 3, 4, 5}),
                      Make<double>("obs_normalizer.mean", v1::DATA_TYPE_FLOAT64, {3}, {0.1, 0.1, 0.1})};
  checkpoint.optimizer = {Make<int64_t>("adam.step", v1::DATA_TYPE_INT64, {1}, {80}),
                          Make<float>("lr", v1::DATA_TYPE_FLOAT32, {1}, {3e-4f})};
  checkpoint.state = {Make<uint8_t>("env_state.0", v1::DATA_TYPE_UINT8, {5}, {0, 1, 2, 3, 4})};
  checkpoint.last_episodes = {{0.1, -1e300}, {20, 500}, {1.5f, std::numeric_limits<float>::quiet_NaN()}};
  checkpoint.changes_json = R"({"ppo.lr":0.0001})";
  checkpoint.counters = {{"trained", uint64_t{1} << 63}, {"lost", 3}};
  return checkpoint;
}

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

class CheckpointTest : public ::testing::Test {
 protected:
  void SetUp() override {
    const auto* test = ::testing::UnitTest::GetInstance()->current_test_info();
    root_ = fs::path(::testing::TempDir()) / absl::StrCat("checkpoint_", test->name(), "_", ::getpid());
    folder_ = root_ / "runs" / "checkpoints";
  }
  void TearDown() override { fs::remove_all(root_); }

  std::string Save(const Checkpoint& checkpoint, uint32_t keep = 10) {
    const auto path = SaveCheckpoint(folder_, checkpoint, keep);
    EXPECT_TRUE(path.ok()) << path.status();
    return path.value_or("");
  }
  std::vector<std::string> Names() const {
    std::vector<std::string> names;
    for (const auto& entry : fs::directory_iterator(folder_)) names.push_back(entry.path().filename());
    std::sort(names.begin(), names.end());
    return names;
  }
  void ExpectDamaged(const std::string& path, const std::string& file) const {
    const auto loaded = LoadCheckpoint(path);
    EXPECT_EQ(loaded.status().code(), absl::StatusCode::kDataLoss) << loaded.status();
    EXPECT_THAT(std::string(loaded.status().message()), HasSubstr(file));
  }

  fs::path root_, folder_;
};

TEST_F(CheckpointTest, ComesBackEqual) {
  const std::string path = Save(Sample());
  EXPECT_EQ(path, folder_ / "step_000000012345");
  const auto loaded = LoadCheckpoint(path);
  ASSERT_TRUE(loaded.ok()) << loaded.status();
  ExpectEqual(*loaded, Sample());
  EXPECT_THAT(Names(), ElementsAre("latest", "step_000000012345"));
  for (const char* file : kFiles) EXPECT_TRUE(fs::is_regular_file(fs::path(path) / file)) << file;
  EXPECT_THAT(Read(fs::path(path) / "manifest.json"), HasSubstr(CheckpointDigest(Sample())));
}

TEST_F(CheckpointTest, LatestLeadsToTheNewest) {
  Save(Sample(100));
  Save(Sample(200));
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

TEST_F(CheckpointTest, AFlippedByteInAnyFileIsFound) {
  const fs::path path = Save(Sample());
  for (const char* file : kFiles) {
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
  const fs::path path = Save(Sample());
  for (const char* file : kFiles) {
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
  const fs::path path = Save(Sample());
  const size_t size = Read(path / "model.safetensors").size();
  fs::resize_file(path / "model.safetensors", 10);
  EXPECT_THAT(std::string(LoadCheckpoint(path).status().message()),
              HasSubstr(absl::StrCat("has 10 bytes, want ", size)));
}

TEST_F(CheckpointTest, RefusesSymlinksAndFoldersInPlaceOfFiles) {
  const fs::path path = Save(Sample());
  for (const char* file : kFiles) {
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
  Save(Sample(1000));
  Save(Sample(2000000000000));  // Thirteen digits: sorts before the other as text.
  Save(Sample(999));
  const auto found = LoadNewestCheckpoint(folder_);
  ASSERT_TRUE(found.ok()) << found.status();
  EXPECT_EQ(found->checkpoint.env_steps, 2000000000000u);
  EXPECT_EQ(found->path, folder_ / "step_2000000000000");
  EXPECT_THAT(found->warnings, IsEmpty());
}

TEST_F(CheckpointTest, DamagedOnesAreSkippedWithAWarning) {
  Save(Sample(100));
  const fs::path middle = Save(Sample(200)), newest = Save(Sample(300));
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
  Save(Sample(100));
  const fs::path newest = Save(Sample(200));
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

// What a loss of power may leave of a file whose last blocks were not written: its beginning, then nothing or zeros.
TEST_F(CheckpointTest, AFileTornAtAnyByteLeadsToTheOneBeforeAndNeverToAMixture) {
  Save(Sample(100));
  const fs::path newest = Save(Sample(200));
  for (const char* file : kFiles) {
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
  Save(Sample(100));
  const fs::path newest = Save(Sample(200));
  EXPECT_TRUE(LoadNewestCheckpoint(folder_, Damage::kRefuse).ok());
  Write(newest / "optimizer.safetensors", "x");
  const absl::Status refused = LoadNewestCheckpoint(folder_, Damage::kRefuse).status();
  EXPECT_EQ(refused.code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(std::string(refused.message()), HasSubstr("step_000000000200/optimizer.safetensors: has 1 bytes, want"));
}

TEST_F(CheckpointTest, ALinkInPlaceOfAFolderIsDamage) {
  Save(Sample(100));
  const fs::path newest = Save(Sample(200));
  fs::rename(newest, root_ / "elsewhere");
  fs::create_symlink(root_ / "elsewhere", newest);
  const auto found = LoadNewestCheckpoint(folder_);
  ASSERT_TRUE(found.ok()) << found.status();
  EXPECT_EQ(found->checkpoint.env_steps, 100u);
  ASSERT_THAT(found->warnings, SizeIs(1));
  EXPECT_THAT(found->warnings[0], HasSubstr("is a link"));
}

TEST_F(CheckpointTest, NothingIsWrittenThroughALink) {
  const fs::path elsewhere = root_ / "elsewhere";
  fs::create_directories(elsewhere);
  fs::create_directories(folder_.parent_path());
  fs::create_directory_symlink(elsewhere, folder_);
  const absl::Status saved = SaveCheckpoint(folder_, Sample(100), 3).status();
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
  Save(Sample(100), 1);
  EXPECT_THAT(Names(), ElementsAre("latest", "step_000000000100"));
  EXPECT_EQ(LoadCheckpoint(folder_ / "latest")->env_steps, 100u);
  EXPECT_EQ(Read(elsewhere / "precious"), "old");
}

TEST_F(CheckpointTest, FilesOfImpossibleSizesAreNotRead) {
  const fs::path path = Save(Sample(100));
  fs::resize_file(path / "DONE", uint64_t{1} << 32);  // A hole: it takes no room.
  ExpectDamaged(path, "DONE: has 4294967296 bytes, want at most 64");
  fs::resize_file(path / "DONE", 17);
  EXPECT_TRUE(LoadCheckpoint(path).ok());
  fs::resize_file(path / "manifest.json", uint64_t{1} << 32);
  ExpectDamaged(path, "manifest.json: has 4294967296 bytes");
}

TEST_F(CheckpointTest, LeftoversOfInterruptedWritesAreRemoved) {
  Save(Sample(100));
  fs::create_directory(folder_ / ".tmp-step_000000000200-1");
  Write(folder_ / ".tmp-step_000000000200-1" / "model.safetensors", "half");
  fs::create_symlink("nowhere", folder_ / ".tmp-latest-1");
  Write(folder_ / "notes.txt", "not ours");
  ASSERT_TRUE(LoadNewestCheckpoint(folder_).ok());
  EXPECT_THAT(Names(), ElementsAre("latest", "notes.txt", "step_000000000100"));
}

TEST_F(CheckpointTest, KeepsTheNewest) {
  for (const uint64_t steps : {100, 200, 300, 400}) Save(Sample(steps), 2);
  EXPECT_THAT(Names(), ElementsAre("latest", "step_000000000300", "step_000000000400"));
}

TEST_F(CheckpointTest, OnesOfLaterStepsDoNotPushOutWhatWasJustWritten) {
  const fs::path damaged = Save(Sample(500));
  fs::remove(damaged / "DONE");
  Save(Sample(300), 1);
  Save(Sample(400), 1);
  EXPECT_THAT(Names(), ElementsAre("latest", "step_000000000400", "step_000000000500"));
  EXPECT_EQ(LoadNewestCheckpoint(folder_)->checkpoint.env_steps, 400u);
}

TEST_F(CheckpointTest, ASecondOfTheSameStepTakesThePlaceOfTheFirst) {
  Save(Sample(100));
  Checkpoint other = Sample(100);
  other.iteration = 8;
  Save(other);
  EXPECT_THAT(Names(), ElementsAre("latest", "step_000000000100"));
  EXPECT_EQ(LoadCheckpoint(folder_ / "latest")->iteration, 8u);
}

TEST_F(CheckpointTest, FolderThatCannotBeMadeIsNamed) {
  fs::create_directories(root_);
  Write(root_ / "runs", "a file where a folder should be");
  const auto saved = SaveCheckpoint(folder_, Sample(), 3);
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
  const auto saved = SaveCheckpoint(folder_, Sample(), 3);
  ASSERT_EQ(::seteuid(user), 0);
  EXPECT_EQ(saved.status().code(), absl::StatusCode::kPermissionDenied) << saved.status();
  fs::permissions(folder_, fs::perms::owner_all);
}

// The largest size of a file stands in for the disk's: writing stops in the middle of one.
TEST_F(CheckpointTest, AWriteThatFailsHalfwayLeavesTheOlderOnesAndNothingElse) {
  Save(Sample(100));
  const std::vector<std::string> before = Names();
  rlimit old_limit;
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &old_limit), 0);
  const auto old_handler = ::signal(SIGXFSZ, SIG_IGN);
  for (const rlim_t bytes : {0, 10, 300}) {
    const rlimit limit{bytes, old_limit.rlim_max};
    ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &limit), 0);
    const auto saved = SaveCheckpoint(folder_, Sample(200), 1);
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
  const auto saved = SaveCheckpoint(folder_, Sample(), 3);
  EXPECT_FALSE(saved.ok());
  EXPECT_THAT(std::string(saved.status().message()), HasSubstr("latest"));
  // The checkpoint itself was complete by then.
  EXPECT_TRUE(LoadNewestCheckpoint(folder_).ok());
}

TEST_F(CheckpointTest, TextThatIsNotUtf8IsRefused) {
  Checkpoint checkpoint = Sample();
  checkpoint.config_yaml = "\xff";
  EXPECT_EQ(SaveCheckpoint(folder_, checkpoint, 3).status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_FALSE(fs::exists(folder_));
}

TEST(CheckpointDigest, IsEqualForEqualRunsAndDiffersOtherwise) {
  const std::string digest = CheckpointDigest(Sample());
  EXPECT_THAT(digest, SizeIs(16));
  EXPECT_EQ(CheckpointDigest(Sample()), digest);
  Checkpoint other = Sample();
  other.counters = {};  // Not part of it: counters tell how the data came, not what was learned.
  other.config_yaml = "";
  EXPECT_EQ(CheckpointDigest(other), digest);

  const auto differs = [&](auto change) {
    Checkpoint changed = Sample();
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
