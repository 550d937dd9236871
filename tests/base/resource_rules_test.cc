// SPDX-License-Identifier: Apache-2.0
#include "base/config/resource_rules.h"

#include "base/config/config.h"
#include "gmock/gmock.h"

namespace skein {
namespace {

using testing::HasSubstr;

std::string Error(const std::vector<std::string>& settings) {
  return std::string(LoadRunConfig("", settings, 1).status().message());
}

TEST(ParseMemorySize, ReadsUnits) {
  EXPECT_EQ(*ParseMemorySize("2GiB"), uint64_t{2} << 30);
  EXPECT_EQ(*ParseMemorySize("512 MiB"), uint64_t{512} << 20);
  EXPECT_EQ(*ParseMemorySize("1.5KiB"), 1536u);
  EXPECT_EQ(*ParseMemorySize("2GB"), 2'000'000'000u);
  EXPECT_EQ(*ParseMemorySize("1TiB"), uint64_t{1} << 40);
  EXPECT_EQ(*ParseMemorySize("1000000"), 1'000'000u);
  EXPECT_EQ(*ParseMemorySize("70B"), 70u);
}

TEST(ParseMemorySize, RefusesTheRest) {
  for (const char* text :
       {"", "GiB", "2Gi", "two GiB", "-1GiB", "0", "0.1", "nan", "inf", "0x10", "1e30", "2 GiB more"}) {
    const auto bytes = ParseMemorySize(text);
    EXPECT_FALSE(bytes.ok()) << text;
    EXPECT_THAT(std::string(bytes.status().message()), HasSubstr("want a size such as 512MiB or 2GiB")) << text;
  }
}

TEST(CheckResources, NamesTheSetting) {
  EXPECT_THAT(Error({"resources.actor.memory=2Gi"}), HasSubstr("resources.actor.memory: got '2Gi'"));
  EXPECT_THAT(Error({"resources.learner.memory=1MiB"}),
              HasSubstr("resources.learner.memory: got '1MiB', want at least 64MiB"));
  EXPECT_THAT(Error({"resources.actor.gpus=1.5"}), HasSubstr("resources.actor.gpus: got 1.5, want a share below 1"));
  EXPECT_THAT(Error({"resources.learner.gpus=2"}), HasSubstr("a learner computes on one GPU; use --learners"));
  EXPECT_THAT(Error({"resources.learner.gpus=0", "learner.device=cuda"}),
              HasSubstr("resources.learner.gpus: is 0, but learner.device is cuda"));
  EXPECT_THAT(Error({"resources.actor.cpus=0"}), HasSubstr("resources.actor.cpus"));
}

TEST(CheckResources, SharesAreWhatIsSet) {
  const auto config =
      LoadRunConfig("", {"resources.actor.cpus=0.5", "resources.actor.memory=2GiB", "resources.learner.gpus=0.25"}, 1);
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(ActorShare(*config).cpus, 0.5);
  EXPECT_EQ(ActorShare(*config).gpus, std::nullopt);
  EXPECT_EQ(ActorShare(*config).memory_bytes, uint64_t{2} << 30);
  EXPECT_EQ(ActorShare(*config).setting, "resources.actor");
  EXPECT_EQ(LearnerShare(*config).gpus, 0.25);
  EXPECT_FALSE(LearnerShare(*config).cpus.has_value());
  EXPECT_TRUE(ActorShare(*LoadRunConfig("", {}, 1)).empty());
  // What is not set is not in the file of a run.
  EXPECT_THAT(ToYaml(*LoadRunConfig("", {}, 1)), testing::Not(HasSubstr("resources")));
}

}  // namespace
}  // namespace skein
