// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <limits>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "learner/run/checkpoint.h"
#include "tests/testing/make_tensor.h"

namespace skein {

inline constexpr const char* kCheckpointFiles[] = {"DONE", "manifest.json", "model.safetensors",
                                                   "optimizer.safetensors", "state.safetensors"};

// With every kind of value that a checkpoint has.
inline Checkpoint SampleCheckpoint(uint64_t env_steps = 12345) {
  Checkpoint checkpoint;
  checkpoint.env_steps = env_steps;
  checkpoint.iteration = 7;
  checkpoint.episodes = 42;
  checkpoint.env_id = "CartPole-v1";
  checkpoint.config_yaml = "seed: 1\nenv:\n  id: \"CartPole-v1\"\n";
  checkpoint.model = {MakeTensor<float>("policy.0.weight", v1::DATA_TYPE_FLOAT32, {2, 3}, {0, 1, 2, 3, 4, 5}),
                      MakeTensor<double>("obs_normalizer.mean", v1::DATA_TYPE_FLOAT64, {3}, {0.1, 0.1, 0.1})};
  checkpoint.optimizer = {MakeTensor<int64_t>("adam.step", v1::DATA_TYPE_INT64, {1}, {80}),
                          MakeTensor<float>("lr", v1::DATA_TYPE_FLOAT32, {1}, {3e-4f})};
  checkpoint.state = {MakeTensor<uint8_t>("env_state.0", v1::DATA_TYPE_UINT8, {5}, {0, 1, 2, 3, 4})};
  checkpoint.last_episodes = {{0.1, -1e300}, {20, 500}, {1.5f, std::numeric_limits<float>::quiet_NaN()}};
  checkpoint.changes_json = R"({"ppo.lr":0.0001})";
  checkpoint.counters = {{"trained", uint64_t{1} << 63}, {"lost", 3}};
  return checkpoint;
}

// A folder for checkpoints, which does not exist yet.
class CheckpointTest : public testing::Test {
 protected:
  void SetUp() override {
    const auto* test = testing::UnitTest::GetInstance()->current_test_info();
    root_ = std::filesystem::path(testing::TempDir()) / absl::StrCat("checkpoint_", test->name(), "_", ::getpid());
    folder_ = root_ / "runs" / "checkpoints";
  }
  void TearDown() override { std::filesystem::remove_all(root_); }

  static std::string Read(const std::filesystem::path& path) {
    std::ifstream stream(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(stream), {}};
  }
  static void Write(const std::filesystem::path& path, const std::string& contents) {
    std::ofstream(path, std::ios::binary | std::ios::trunc) << contents;
  }
  std::string Save(const Checkpoint& checkpoint, uint32_t keep = 10) {
    const auto path = SaveCheckpoint(folder_, checkpoint, keep);
    EXPECT_TRUE(path.ok()) << path.status();
    return path.value_or("");
  }
  std::vector<std::string> Names() const {
    std::vector<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(folder_)) names.push_back(entry.path().filename());
    std::sort(names.begin(), names.end());
    return names;
  }
  void ExpectDamaged(const std::string& path, const std::string& file) const {
    const auto loaded = LoadCheckpoint(path);
    EXPECT_EQ(loaded.status().code(), absl::StatusCode::kDataLoss) << loaded.status();
    EXPECT_THAT(std::string(loaded.status().message()), testing::HasSubstr(file));
  }

  std::filesystem::path root_, folder_;
};

}  // namespace skein
