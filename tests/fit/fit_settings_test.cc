// SPDX-License-Identifier: Apache-2.0
#include "learner/sequence/fit_settings.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/config/message_settings.h"
#include "tests/fit/text_file.h"

namespace skein {
namespace {

using ::testing::HasSubstr;

TEST(FitSettings, HaveDefaultsAndReadBackAsWritten) {
  const auto config = LoadFitConfig("", {"train.lr=1e-2", "data.files=a.txt,b.gz", "model.hidden=32"});
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->train().lr(), 0.01);
  EXPECT_EQ(config->model().layers(), 2);
  const auto again = ParseFitConfig(SettingsYaml(*config), "text");
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(again->SerializeAsString(), config->SerializeAsString());
}

TEST(FitSettings, OfTheShippedFileAreRead) {
  const auto config = LoadFitConfig("configs/deeplog_hdfs.yaml", {"data.files=a.txt"});
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->name(), "deeplog-hdfs");
}

TEST(FitSettings, NameFileLineColumnAndTheNearestKey) {
  const std::string path = WriteText(FreshFolder("settings") + "/fit.yaml", "train:\n  epoch: 3\n");
  const auto config = LoadFitConfig(path, {});
  EXPECT_EQ(config.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(config.status().message()),
              HasSubstr(path + ":2:3: unknown key 'train.epoch'; the nearest is 'train.epochs'"));
  WriteText(path, "ppo:\n  lr: 1e-3\n");
  EXPECT_THAT(std::string(LoadFitConfig(path, {}).status().message()),
              HasSubstr(path + ":1:1: unknown key 'ppo'; 'ppo' is a key of `skein train`"));
  WriteText(path, "model:\n  hidden: 40\n");
  EXPECT_THAT(std::string(LoadFitConfig(path, {}).status().message()),
              HasSubstr(path + ":2:11: model.hidden must be a multiple of 16, got 40"));
  EXPECT_THAT(std::string(LoadFitConfig("", {"train.lr=.nan"}).status().message()), HasSubstr("finite"));
}

}  // namespace
}  // namespace skein
