// SPDX-License-Identifier: Apache-2.0
#include "base/config/setting_changes.h"

#include <string>

#include "base/config/config.h"
#include "base/config/phases.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"

namespace skein {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

v1::RunConfig Load(const std::string& yaml) {
  v1::RunConfig base;
  EXPECT_TRUE(MergeYaml(yaml, "run.yaml", &base).ok()) << MergeYaml(yaml, "run.yaml", &base);
  const auto config = LoadRunConfig("", {}, 2, base);
  EXPECT_TRUE(config.ok()) << config.status();
  return config.ok() ? *config : v1::RunConfig();
}

v1::RunConfig CartPole() { return Load("{env: {id: CartPole-v1}, ppo: {lr: 1e-3, lr_schedule: constant}}"); }

std::string Error(const std::string& changes) {
  return std::string(ReadChanges(CartPole(), changes).status().message());
}

TEST(SettingChanges, AreReadByNameAndInSections) {
  const v1::RunConfig config = CartPole();
  for (const char* const changes :
       {R"({"ppo.lr": 0.0001, "ppo.epochs": 3})", R"({"ppo": {"lr": 1e-4, "epochs": 3}})"}) {
    const auto set = ReadChanges(config, changes);
    ASSERT_TRUE(set.ok()) << set.status();
    const v1::RunConfig changed = WithSettings(config, *set);
    EXPECT_EQ(changed.ppo().lr(), 1e-4);
    EXPECT_EQ(changed.ppo().epochs(), 3u);
    EXPECT_EQ(changed.ppo().clip(), config.ppo().clip());
    EXPECT_EQ(DescribeSettings(*set), "ppo.lr 1e-04, ppo.epochs 3");
  }
  EXPECT_TRUE(ReadChanges(config, "{}").ok());
}

TEST(SettingChanges, ThatCannotBeAreRefusedByName) {
  EXPECT_THAT(Error(R"({"ppo.minibatch_size": 64})"), StartsWith("set.ppo.minibatch_size: cannot change during a run"));
  EXPECT_THAT(Error(R"({"ppo.lr": -1})"), HasSubstr("set.ppo.lr"));
  EXPECT_THAT(Error(R"({"ppo.lr": "much"})"), HasSubstr("set.ppo.lr"));
  EXPECT_THAT(Error(R"({"ppo.lrr": 1})"), HasSubstr("ppo.lrr"));
  EXPECT_THAT(Error(R"({"ars.step_size": 0.1})"), StartsWith("set: it sets another algorithm than the run's"));
  EXPECT_THAT(Error(R"({"env.uav.step_penalty": 1})"),
              StartsWith("set.env.uav.step_penalty 1: actors need to know it beforehand; use phases"));
  EXPECT_THAT(Error(R"({"directions.noise_std": 1})"), HasSubstr("use phases"));
  const v1::RunConfig adaptive = Load("{env: {id: CartPole-v1}, ppo: {lr_schedule: kl_adaptive}}");
  EXPECT_THAT(std::string(ReadChanges(adaptive, R"({"ppo.lr": 1e-4})").status().message()),
              HasSubstr("follows the KL divergence"));
}

TEST(SettingChanges, EverySettingHasItsName) {
  const nlohmann::json settings = SettingsByName(CartPole());
  EXPECT_EQ(settings["ppo.lr"], 1e-3);
  EXPECT_EQ(settings["ppo.lr_schedule"], "constant");
  EXPECT_EQ(settings["env.id"], "CartPole-v1");
  EXPECT_EQ(settings["seed"], 1);
  EXPECT_TRUE(settings["model.hidden"].is_array());
  EXPECT_FALSE(settings["learner.tf32"].get<bool>());
}

TEST(SettingChanges, ACallbackIsAFunctionOfAModule) {
  EXPECT_TRUE(CheckCallbacks(Load("{env: {id: CartPole-v1}}")).ok());
  for (const char* const good : {"mine:make", "a.b:C.make", "mine:make?target=1:2", "exec:./watch 195"}) {
    EXPECT_TRUE(
        CheckCallbacks(Load(std::string("{env: {id: CartPole-v1}, callbacks: {python: \"") + good + "\"}}")).ok());
  }
  for (const char* const bad : {"mine", ":make", "mine:", "mine?a=b:c", "exec:", "exec:  "}) {
    v1::RunConfig config = CartPole();
    config.mutable_callbacks()->set_python(bad);
    EXPECT_EQ(CheckCallbacks(config).code(), absl::StatusCode::kInvalidArgument) << bad;
    EXPECT_THAT(std::string(ValidateRunConfig(config).message()), HasSubstr("want package.module:function"));
  }
}

}  // namespace
}  // namespace skein
