// SPDX-License-Identifier: Apache-2.0
// Row 29: the newest checkpoint is damaged.
#include <sys/stat.h>
#include <xxhash.h>

#include <filesystem>
#include <fstream>
#include <functional>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "gmock/gmock.h"
#include "tests/faults/faulty_training.h"
#include "tests/integration/cluster.h"
#include "tests/integration/run_files.h"
#include "tests/testing/scrape.h"

namespace skein {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

std::string Read(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

void Write(const std::string& path, const std::string& contents) {
  std::ofstream(path, std::ios::binary | std::ios::trunc) << contents;
}

std::string Checksum(const std::string& bytes) {
  return absl::StrFormat("%016x", XXH3_64bits(bytes.data(), bytes.size()));
}

class DamagedCheckpoint : public testing::Test {
 protected:
  // Two checkpoints, after 1024 and 2048 steps; made once.
  static const std::string& Sound() {
    static const FaultyTraining* const training = [] {
      auto* made = new FaultyTraining({}, 2);
      EXPECT_EQ(made->Train("").code, 0);
      return made;
    }();
    static const std::string folder = training->checkpoints();
    return folder;
  }

  // A learner comes up with the newest of the two damaged. `file`: what its message must name, relative to checkpoints.
  static void ExpectSkipped(const std::function<void(const std::string& newest)>& damage, const std::string& file,
                            const std::string& why) {
    Cluster cluster({});
    const std::string checkpoints = cluster.run_folder() + "/checkpoints";
    fs::copy(Sound(), checkpoints, fs::copy_options::recursive | fs::copy_options::copy_symlinks);
    damage(checkpoints + "/step_000000002048");
    cluster.StartCoordinator();
    // The newest or none.
    cluster.StartLearner({}, {"--resume", "must"});
    EXPECT_EQ(cluster.learner().WaitForEnd(), 65);
    EXPECT_THAT(cluster.learner().Output(), HasSubstr(absl::StrCat(checkpoints, "/", file, ": ", why)));
    // The one before, with a warning and a count.
    cluster.StartLearner();
    ASSERT_TRUE(cluster.WaitForStatus(
        [](const v1::StatusResponse& status) { return status.progress().env_steps() == 1024; }, absl::Seconds(30)))
        << cluster.learner().Output();
    const std::string output = cluster.learner().Output();
    EXPECT_THAT(output, HasSubstr("resumed from " + checkpoints + "/step_000000001024"));
    EXPECT_THAT(output, HasSubstr(absl::StrCat("skipped ", checkpoints, "/step_000000002048: checkpoint file ",
                                               checkpoints, "/", file, ": ", why)));
    const int port = std::stoi(FirstMatch(output, "metrics=\\S+:(\\d+)"));
    EXPECT_EQ(Scrape(port, "skein_learner_damaged_checkpoints_total"), 1);
  }
};

using FaultRow29 = DamagedCheckpoint;

TEST_F(FaultRow29, AFlippedByte) {
  ExpectSkipped(
      [](const std::string& newest) {
        std::string bytes = Read(newest + "/optimizer.safetensors");
        bytes[bytes.size() / 2] ^= 1;
        Write(newest + "/optimizer.safetensors", bytes);
      },
      "step_000000002048/optimizer.safetensors", "checksum is");
}

TEST_F(FaultRow29, ATruncatedFile) {
  ExpectSkipped(
      [](const std::string& newest) {
        fs::resize_file(newest + "/model.safetensors", fs::file_size(newest + "/model.safetensors") - 100);
      },
      "step_000000002048/model.safetensors", "has ");
}

TEST_F(FaultRow29, AMissingFile) {
  ExpectSkipped([](const std::string& newest) { fs::remove(newest + "/state.safetensors"); },
                "step_000000002048/state.safetensors", "is missing");
}

TEST_F(FaultRow29, ALinkToAFileOutside) {
  // A pipe that nobody writes into: a process that opens it hangs.
  const ScratchFolder outside;
  const std::string pipe = outside.path() + "/pipe";
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  ExpectSkipped(
      [&](const std::string& newest) {
        fs::remove(newest + "/model.safetensors");
        fs::create_symlink(pipe, newest + "/model.safetensors");
      },
      "step_000000002048/model.safetensors", "is not a regular file");
}

TEST_F(FaultRow29, ALinkToAFolderOutside) {
  const ScratchFolder outside;
  ExpectSkipped(
      [&](const std::string& newest) {
        fs::rename(newest, outside.path() + "/elsewhere");
        fs::create_symlink(outside.path() + "/elsewhere", newest);
      },
      "step_000000002048", "is a link");
}

TEST_F(FaultRow29, AHeaderLengthOfTwoToThe63) {
  // All checksums agree with it, as somebody would do it who means harm.
  ExpectSkipped(
      [](const std::string& newest) {
        std::string bytes = Read(newest + "/model.safetensors");
        bytes.replace(0, 8, std::string("\0\0\0\0\0\0\0\x80", 8));
        Write(newest + "/model.safetensors", bytes);
        auto manifest = ReadJson(newest + "/manifest.json");
        manifest["files"]["model.safetensors"]["xxh3_64"] = Checksum(bytes);
        const std::string text = manifest.dump();
        Write(newest + "/manifest.json", text);
        Write(newest + "/DONE", Checksum(text) + "\n");
      },
      "step_000000002048/model.safetensors", "");
}

TEST_F(FaultRow29, AllOfThem) {
  Cluster cluster({});
  const std::string checkpoints = cluster.run_folder() + "/checkpoints";
  fs::copy(Sound(), checkpoints, fs::copy_options::recursive | fs::copy_options::copy_symlinks);
  for (const char* step : {"1024", "2048"}) Write(absl::StrCat(checkpoints, "/step_00000000", step, "/DONE"), "");
  cluster.StartCoordinator();
  cluster.StartLearner();
  EXPECT_EQ(cluster.learner().WaitForEnd(), 65);
  EXPECT_THAT(cluster.learner().Output(), HasSubstr("every checkpoint in " + checkpoints + " is damaged"));
}

}  // namespace
}  // namespace skein
