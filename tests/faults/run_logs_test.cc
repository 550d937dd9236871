// SPDX-License-Identifier: Apache-2.0
// Row 37: metrics.jsonl and TensorBoard's files after kills and after a full disk.
#include <sys/mount.h>

#include <csignal>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/process/file.h"
#include "gmock/gmock.h"
#include "tensorboard/event.pb.h"
#include "tests/faults/faulty_training.h"
#include "tests/integration/run_files.h"
#include "tests/testing/fault_choice.h"
#include "tests/testing/wait_until.h"

namespace skein {
namespace {

namespace fs = std::filesystem;

constexpr uint64_t kIterationSteps = 1024;

uint64_t CountLines(const std::string& path) {
  const std::string text = ReadFile(path).value_or("");
  return static_cast<uint64_t>(std::count(text.begin(), text.end(), '\n'));
}

// metrics.jsonl has each iteration up to `last` once, in their order, and nothing else.
void ExpectALineForEachIteration(const std::string& run, uint64_t last) {
  std::ifstream metrics(run + "/metrics.jsonl");
  uint64_t iterations = 0;
  for (std::string line; std::getline(metrics, line);) {
    const auto json = nlohmann::json::parse(line, nullptr, false);
    ASSERT_TRUE(json.is_object()) << "line " << iterations + 1 << ": " << line;
    ASSERT_EQ(json.value("iteration", uint64_t{0}), ++iterations);
    ASSERT_EQ(json.value("env_steps", uint64_t{0}), iterations * kIterationSteps);
  }
  EXPECT_EQ(iterations, last);
}

// Each file of TensorBoard's ends with a complete record, and no figure has two values at one step. Returns how many
// steps have a mean return.
size_t ExpectEachStepOnceForTensorBoard(const std::string& run) {
  std::map<std::pair<std::string, int64_t>, int> values;
  size_t steps = 0;
  for (const auto& entry : fs::directory_iterator(run)) {
    if (!absl::StartsWith(entry.path().filename().string(), "events.out.tfevents.")) continue;
    const std::string text = ReadFile(entry.path()).value_or("");
    size_t at = 0;
    while (at + 16 <= text.size()) {
      uint64_t size = 0;
      std::memcpy(&size, text.data() + at, sizeof(size));
      if (size > text.size() - at - 16) break;
      tensorboard::Event event;
      EXPECT_TRUE(event.ParseFromString(text.substr(at + 12, size))) << entry.path();
      for (const auto& value : event.summary().value()) {
        EXPECT_EQ(++values[std::make_pair(value.tag(), event.step())], 1) << value.tag() << " at " << event.step();
        if (value.tag() == "update/entropy") ++steps;
      }
      at += 16 + size;
    }
    EXPECT_EQ(at, text.size()) << entry.path() << " ends within a record";
  }
  return steps;
}

TEST(FaultRow37, KilledAtTwentyPointsEachIterationIsThereOnce) {
  constexpr uint32_t kIterations = 400;
  const FaultyTraining training({"checkpoint.interval_steps=7168"}, kIterations);
  std::mt19937 random = FaultRandom(37);
  for (int i = 0; i < 20; ++i) {
    const uint64_t before = CountLines(training.run() + "/metrics.jsonl");
    // A session goes back to the checkpoint before, and on from there.
    const uint64_t until = before + Choose(&random, 1, 14);
    const bool all = Choose(&random, 0, 1) == 1;
    SayChoice(absl::StrCat(all ? "all processes are" : "the learner is", " killed at ", until, " lines"));
    const auto skein = training.Start("");
    ASSERT_TRUE(WaitUntil([&] { return CountLines(training.run() + "/metrics.jsonl") >= until; }, absl::Minutes(1)));
    const auto learner = FindChild(skein->pid(), "skein-learner");
    ASSERT_TRUE(learner);
    if (all) skein->Kill();
    kill(*learner, SIGKILL);
    skein->WaitForEnd();
    // The kill may have come within a line, too.
    if (Choose(&random, 0, 2) == 0) std::ofstream(training.run() + "/metrics.jsonl", std::ios::app) << "{\"actor_st";
  }
  const Ended ended = training.Train("");
  EXPECT_EQ(ended.code, 0) << ended.out;
  ExpectALineForEachIteration(training.run(), kIterations);
  EXPECT_EQ(ExpectEachStepOnceForTensorBoard(training.run()), kIterations);
}

TEST(FaultRow37, AfterAFullDiskNoLineIsMissing) {
  const FaultyTraining training({"checkpoint.interval_steps=20480", "logging.interval_seconds=1"}, 1'000'000);
  if (mount("tmpfs", training.folder().c_str(), "tmpfs", 0, "size=8m") != 0) {
    GTEST_SKIP() << "file systems cannot be mounted here";
  }
  const absl::Cleanup unmount = [&training] { umount2(training.folder().c_str(), MNT_DETACH); };
  const auto skein = training.Start("");
  ASSERT_TRUE(WaitUntil([&] { return !NewestCheckpoint(training.run()).empty(); }, absl::Minutes(1)));
  const std::string filler = training.folder() + "/filler";
  {
    std::ofstream file(filler);
    while (file << std::string(4096, 'x') << std::flush) continue;
  }
  skein->WaitForOutput("(checkpoint not written: .*No space left on device)");
  fs::remove(filler);
  const std::string before = NewestCheckpoint(training.run());
  EXPECT_TRUE(WaitUntil([&] { return NewestCheckpoint(training.run()) > before; }, absl::Minutes(1)));
  skein->Signal(SIGTERM);
  EXPECT_EQ(skein->WaitForEnd(), 0);
  const auto manifest = ReadJson(NewestCheckpoint(training.run()) + "/manifest.json");
  ExpectALineForEachIteration(training.run(), manifest.value("iteration", uint64_t{0}));
  ExpectEachStepOnceForTensorBoard(training.run());
}

}  // namespace
}  // namespace skein
