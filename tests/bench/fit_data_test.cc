// SPDX-License-Identifier: Apache-2.0
#include "bench/fit_data.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <set>
#include <string>
#include <vector>

#include "learner/sequence/fit_settings.h"
#include "tests/fit/text_file.h"

namespace skein {
namespace {

using testing::HasSubstr;

std::vector<std::string> Lines(const std::string& path) {
  std::ifstream file(path);
  std::vector<std::string> lines;
  for (std::string line; std::getline(file, line);) lines.push_back(line);
  return lines;
}

v1::FitConfig Config(const std::vector<std::string>& overrides) {
  const auto config = LoadFitConfig("", overrides);
  EXPECT_TRUE(config.ok()) << config.status();
  return *config;
}

bool Goes() { return false; }

TEST(FitData, MadeUpSequencesAreAllDifferent) {
  const std::string path = FreshFolder("bench-distinct") + "/sequences";
  ASSERT_TRUE(WriteDistinctSequences(3, 5, 243, 1, path).ok());  // All that there are.
  const std::vector<std::string> lines = Lines(path);
  EXPECT_EQ(std::set<std::string>(lines.begin(), lines.end()).size(), 243u);
  for (const std::string& line : lines) ASSERT_EQ(std::count(line.begin(), line.end(), ' '), 4) << line;
  EXPECT_THAT(std::string(WriteDistinctSequences(3, 5, 244, 1, path).message()),
              HasSubstr("244 sequences of 5 keys cannot all be different with a vocabulary of 3"));
  EXPECT_FALSE(WriteDistinctSequences(1, 5, 2, 1, path).ok());
  EXPECT_TRUE(WriteDistinctSequences(1, 5, 1, 1, path).ok());
}

TEST(FitData, MakesUpSequencesOfTheConfigurationsVocabulary) {
  const v1::FitConfig config = Config({"model.vocabulary=7", "train.batch_size=4", "data.keys=integers"});
  const auto data = FitData::Open(config, 9, Goes);
  ASSERT_TRUE(data.ok()) << data.status();
  EXPECT_EQ((*data)->store().counts().train_sequences, 4 * kFitBatches);
  EXPECT_EQ((*data)->store().counts().held_sequences, 0u);
  EXPECT_EQ((*data)->store().vocabulary().classes(), 9u);  // And the end, and the unknown key.
  BatchLoop batches((*data)->config(), &(*data)->store());
  for (uint32_t i = 0; i < kFitBatches; ++i) {
    const auto batch = batches.Next();
    ASSERT_TRUE(batch.ok()) << batch.status();
    EXPECT_EQ((*batch)->sequences, 4u);
    EXPECT_EQ((*batch)->steps, 4u * 10);
    EXPECT_EQ((*batch)->distinct_steps, (*batch)->steps);
  }
}

TEST(FitData, GivesTheSameBatchesAgainAndAgain) {
  const std::string folder = FreshFolder("bench-loop");
  std::string text;
  for (int i = 0; i < 40; ++i) text += std::to_string(i % 9) + (i % 2 == 0 ? " 1 2\n" : " 3\n");
  const v1::FitConfig config =
      Config({"data.files=" + WriteText(folder + "/a", text), "data.holdout=0", "train.batch_size=16"});
  const auto data = FitData::Open(config, 1, Goes);
  ASSERT_TRUE(data.ok()) << data.status();
  BatchLoop batches((*data)->config(), &(*data)->store());
  std::vector<std::vector<uint32_t>> classes;
  for (int i = 0; i < 7; ++i) {
    const auto batch = batches.Next();
    ASSERT_TRUE(batch.ok()) << batch.status();
    EXPECT_EQ((*batch)->number, static_cast<uint64_t>(i % 3));  // 40 sequences are three batches.
    classes.push_back((*batch)->rows.classes);
    if (i >= 3) {
      EXPECT_EQ(classes[static_cast<size_t>(i)], classes[static_cast<size_t>(i) - 3]);
    }
  }
}

TEST(FitData, StopsOnRequest) {
  const auto data = FitData::Open(Config({"model.vocabulary=7", "train.batch_size=4"}), 9, [] { return true; });
  EXPECT_TRUE(absl::IsCancelled(data.status())) << data.status();
}

}  // namespace
}  // namespace skein
