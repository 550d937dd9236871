// SPDX-License-Identifier: Apache-2.0
#include "base/config/config.h"

#include <cmath>
#include <filesystem>
#include <limits>

#include "absl/strings/str_cat.h"
#include "base/process/file.h"
#include "gmock/gmock.h"
#include "google/protobuf/util/message_differencer.h"
#include "gtest/gtest.h"

namespace skein {
namespace {

using google::protobuf::util::MessageDifferencer;
using testing::ElementsAre;
using testing::EndsWith;
using testing::HasSubstr;
using testing::StartsWith;

// The message of the error that reading `text` gives, "" if none.
std::string MergeError(const std::string& text) {
  v1::RunConfig config;
  const absl::Status status = MergeYaml(text, "run.yaml", &config);
  if (status.ok()) return "";
  EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
  EXPECT_TRUE(MessageDifferencer::Equals(config, v1::RunConfig())) << "changed in spite of an error";
  return std::string(status.message());
}

std::string OverrideError(const std::string& assignment, const std::string& yaml = "") {
  v1::RunConfig config;
  EXPECT_TRUE(MergeYaml(yaml, "run.yaml", &config).ok());
  const absl::Status status = ApplyOverride(assignment, &config);
  if (status.ok()) return "";
  EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
  return std::string(status.message());
}

std::string LoadError(const std::vector<std::string>& overrides) {
  const absl::Status status = LoadRunConfig("", overrides, 2).status();
  if (status.ok()) return "";
  EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
  return std::string(status.message());
}

TEST(MergeYaml, SetsEveryKindOfSetting) {
  v1::RunConfig config;
  const absl::Status status = MergeYaml(R"(
name: "my run"
seed: 18446744073709551615
total_steps: 2e6
env: {id: CartPole-v1}
model:
  hidden: [32, 16]
  activation: elu
  shared_trunk: true
sync:
  mode: overlapped
ppo:
  lr: 1e-3
  epochs: 7
checkpoint:
  # nothing here
)",
                                        "run.yaml", &config);
  ASSERT_TRUE(status.ok()) << status;
  EXPECT_EQ(config.name(), "my run");
  EXPECT_EQ(config.seed(), std::numeric_limits<uint64_t>::max());
  EXPECT_EQ(config.total_steps(), 2000000u);
  EXPECT_EQ(config.env().id(), "CartPole-v1");
  EXPECT_THAT(config.model().hidden(), ElementsAre(32, 16));
  EXPECT_EQ(config.model().activation(), v1::ACTIVATION_ELU);
  EXPECT_TRUE(config.model().shared_trunk());
  EXPECT_EQ(config.sync().mode(), v1::SYNC_MODE_OVERLAPPED);
  EXPECT_EQ(config.ppo().lr(), 1e-3);
  EXPECT_EQ(config.ppo().epochs(), 7u);
}

TEST(MergeYaml, LeavesWhatItDoesNotName) {
  v1::RunConfig config;
  config.mutable_ppo()->set_lr(0.5);
  config.mutable_model()->add_hidden(8);
  ASSERT_TRUE(MergeYaml("ppo: {epochs: 2}\nmodel: {hidden: [4, 4]}", "run.yaml", &config).ok());
  EXPECT_EQ(config.ppo().lr(), 0.5);
  EXPECT_FALSE(config.ppo().has_clip());
  EXPECT_THAT(config.model().hidden(), ElementsAre(4, 4));  // Lists are replaced.
  ASSERT_TRUE(MergeYaml("", "run.yaml", &config).ok());
  ASSERT_TRUE(MergeYaml("# only a comment\n", "run.yaml", &config).ok());
  EXPECT_EQ(config.ppo().epochs(), 2u);
}

TEST(MergeYaml, UnknownKeyNamesPlaceAndNearestKey) {
  EXPECT_EQ(MergeError("seed: 1\nppo:\n  gama: 0.9\n"),
            "run.yaml:3:3: unknown key 'ppo.gama'; the nearest is 'ppo.gamma'");
  EXPECT_EQ(MergeError("epochs: 3"), "run.yaml:1:1: unknown key 'epochs'; the nearest is 'ppo.epochs'");
  EXPECT_EQ(MergeError("pop: {lr: 1}"), "run.yaml:1:1: unknown key 'pop'; the nearest is 'ppo'");
  EXPECT_EQ(MergeError("data: {files: [a]}"), "run.yaml:1:1: unknown key 'data'; 'data' is a key of `skein fit`");
}

TEST(MergeYaml, ARunHasOneAlgorithm) {
  EXPECT_EQ(MergeError("seed: 1\nppo: {lr: 1}\nreinforce: {lr: 1}\n"),
            "run.yaml:3:1: 'reinforce' is given, but the algorithm of this run is 'ppo'; a run has one");
  EXPECT_EQ(MergeError("reinforce:\nppo:\n"),
            "run.yaml:2:1: 'ppo' is given, but the algorithm of this run is 'reinforce'; a run has one");
}

TEST(ApplyDefaults, FillsTheChosenAlgorithmOnly) {
  v1::RunConfig config;
  ApplyDefaults(&config);
  EXPECT_EQ(config.algorithm_case(), v1::RunConfig::kPpo);  // None was given.
  config.Clear();
  ASSERT_TRUE(MergeYaml("reinforce: {lr: 0.5}", "run.yaml", &config).ok());
  ApplyDefaults(&config);
  EXPECT_EQ(config.algorithm_case(), v1::RunConfig::kReinforce);
  EXPECT_EQ(config.reinforce().lr(), 0.5);
  EXPECT_EQ(config.reinforce().gamma(), 0.99);
  v1::RunConfig read;
  ASSERT_TRUE(MergeYaml(ToYaml(config), "run.yaml", &read).ok());
  EXPECT_EQ(read.SerializeAsString(), config.SerializeAsString());
}

TEST(MergeYaml, AnEndlessKeyIsCutShort) {
  EXPECT_THAT(MergeError("? " + std::string(500000, 'k') + "\n: 1\n"),
              StartsWith("run.yaml:1:3: unknown key '" + std::string(200, 'k') + "...'; the nearest is '"));
}

TEST(MergeYaml, DuplicateKeyIsAnError) {
  EXPECT_EQ(MergeError("ppo:\n  lr: 1e-3\n  lr: 1e-4\n"), "run.yaml:3:3: key 'ppo.lr' is given twice");
}

TEST(MergeYaml, WrongTypesAreErrors) {
  EXPECT_EQ(MergeError("ppo:\n  lr: abc"), "run.yaml:2:7: ppo.lr: expected a number, got 'abc'");
  EXPECT_EQ(MergeError("ppo: {lr: '0.1'}"), "run.yaml:1:11: ppo.lr: expected a number, got the text \"0.1\"");
  EXPECT_THAT(MergeError("ppo: {lr: }"), HasSubstr("ppo.lr: expected a number, got nothing"));
  EXPECT_THAT(MergeError("ppo: {lr: [1]}"), EndsWith("ppo.lr: expected a number, got a list"));
  EXPECT_THAT(MergeError("seed: {a: 1}"), EndsWith("seed: expected a whole number, got a mapping"));
  EXPECT_THAT(MergeError("ppo: {epochs: 1.5}"), EndsWith("ppo.epochs: expected a whole number, got '1.5'"));
  EXPECT_THAT(MergeError("ppo: {epochs: x}"), EndsWith("ppo.epochs: expected a whole number, got 'x'"));
  EXPECT_THAT(MergeError("ppo: {epochs: .nan}"), EndsWith("ppo.epochs: expected a whole number, got '.nan'"));
  EXPECT_THAT(MergeError("ppo: {epochs: nan}"), EndsWith("ppo.epochs: expected a whole number, got 'nan'"));
  EXPECT_THAT(MergeError("model: {shared_trunk: yes}"), EndsWith("expected true or false, got 'yes'"));
  EXPECT_THAT(MergeError("model: {hidden: 64}"), EndsWith("expected a list such as [64, 64], got '64'"));
  EXPECT_THAT(MergeError("model: {hidden: []}"), EndsWith("expected at least one value in the list"));
  EXPECT_THAT(MergeError("model: {hidden: [64, x]}"), StartsWith("run.yaml:1:22: model.hidden: expected a whole"));
  EXPECT_THAT(MergeError("env: {id: [a]}"), EndsWith("env.id: expected a text, got a list"));
  EXPECT_THAT(MergeError("env: HalfCheetah-v5"), EndsWith("env: expected keys and values, got 'HalfCheetah-v5'"));
  EXPECT_THAT(MergeError("[1, 2]"), EndsWith("the configuration: expected keys and values, got a list"));
  EXPECT_THAT(MergeError("? [a]\n: 1"), HasSubstr("expected a key"));
}

TEST(MergeYaml, EnumsListWhatIsAllowed) {
  EXPECT_EQ(MergeError("sync: {mode: eager}"),
            "run.yaml:1:14: sync.mode: expected one of on_policy, overlapped, async, on_device; got 'eager'");
  EXPECT_THAT(MergeError("sync: {mode: asnyc}"), HasSubstr("on_device; got 'asnyc'; the nearest is 'async'"));
  EXPECT_THAT(MergeError("sync: {mode: unspecified}"), HasSubstr("expected one of"));
  EXPECT_THAT(MergeError("sync: {mode: ON_POLICY}"), HasSubstr("expected one of"));
  EXPECT_THAT(MergeError("sync: {mode: 1}"), HasSubstr("expected one of"));
}

TEST(MergeYaml, NumbersMustBeFinite) {
  for (const char* value : {"nan", "NaN", ".nan", ".NaN", "inf", "-inf", ".inf", "-.INF", "1e999"}) {
    EXPECT_THAT(MergeError(absl::StrCat("ppo: {lr: ", value, "}")), HasSubstr("ppo.lr: must be a finite number"))
        << value;
  }
}

TEST(MergeYaml, EndsOfSomeRangesMayBeInfinite) {
  v1::RunConfig config, again;
  ASSERT_TRUE(ApplyOverride("env.mujoco.healthy_z_range=[0.7, inf]", &config).ok());
  ASSERT_TRUE(MergeYaml("env: {mujoco: {contact_cost_range: [-.inf, 10]}}", "run.yaml", &config).ok());
  EXPECT_THAT(ToYaml(config), testing::AllOf(HasSubstr("[0.7, .inf]"), HasSubstr("[-.inf, 10]")));
  ASSERT_TRUE(MergeYaml(ToYaml(config), "run.yaml", &again).ok() && MessageDifferencer::Equals(config, again));
}

TEST(MergeYaml, NumbersMustBeInTheirRange) {
  EXPECT_THAT(MergeError("ppo: {lr: 0}"), EndsWith("ppo.lr: must be greater than 0, got 0"));
  EXPECT_THAT(MergeError("ppo: {lr: 11}"), EndsWith("ppo.lr: must be at most 10, got 11"));
  EXPECT_THAT(MergeError("ppo: {gamma: -0.5}"), EndsWith("ppo.gamma: must be at least 0, got -0.5"));
  EXPECT_THAT(MergeError("ppo: {epochs: 0}"), EndsWith("ppo.epochs: must be at least 1, got 0"));
  EXPECT_THAT(MergeError("ppo: {epochs: -1}"), EndsWith("ppo.epochs: must be at least 0, got '-1'"));
  EXPECT_THAT(MergeError("ppo: {epochs: 4294967296}"), HasSubstr("ppo.epochs: must be at most 4294967295"));
  EXPECT_THAT(MergeError("seed: 18446744073709551616"), HasSubstr("seed: must be at most 18446744073709551615"));
  EXPECT_THAT(MergeError("model: {hidden: [64, 0]}"), EndsWith("model.hidden: must be at least 1, got 0"));
}

TEST(MergeYaml, BadYamlNamesItsPlace) {
  EXPECT_THAT(MergeError("seed: 1\nppo: {lr: 1"), StartsWith("run.yaml:2:"));
  EXPECT_THAT(MergeError("a: b: c"), StartsWith("run.yaml:1:"));
  EXPECT_THAT(MergeError("\t- x"), StartsWith("run.yaml:1:"));
  EXPECT_THAT(MergeError("seed: 1\n---\nseed: 2\n"), HasSubstr("more than one YAML document"));
  EXPECT_NE(MergeError(std::string(100000, '[')), "");
  EXPECT_NE(MergeError(std::string("seed: \x00\xff\xfe", 9)), "");
}

TEST(MergeYaml, AliasesAndTagsAreRefused) {
  EXPECT_EQ(MergeError("env: &e {id: x}"), "run.yaml:1:6: anchors and aliases are not supported");
  EXPECT_THAT(MergeError("ppo: {lr: &a 1, clip: *a}"), HasSubstr("aliases are not supported"));
  EXPECT_THAT(MergeError("ppo: {lr: !!float 1}"), HasSubstr("tags are not supported"));
}

TEST(MergeYaml, LargeTextIsRefused) {
  EXPECT_EQ(MergeError(std::string(1 << 20, '#')), "");
  EXPECT_THAT(MergeError(std::string((1 << 20) + 1, '#')), HasSubstr("1048577 bytes"));
}

TEST(ApplyOverride, SetsOneField) {
  v1::RunConfig config;
  for (const char* assignment : {"ppo.lr=3e-2", "model.hidden=[8]", "sync.mode=overlapped", "name=a=b", "seed = 5",
                                 "ppo={clip: 0.3}", "env.id=x", "env.id="}) {
    const absl::Status status = ApplyOverride(assignment, &config);
    EXPECT_TRUE(status.ok()) << status;
  }
  EXPECT_EQ(config.ppo().lr(), 3e-2);
  EXPECT_EQ(config.ppo().clip(), 0.3);
  EXPECT_THAT(config.model().hidden(), ElementsAre(8));
  EXPECT_EQ(config.sync().mode(), v1::SYNC_MODE_OVERLAPPED);
  EXPECT_EQ(config.name(), "a=b");
  EXPECT_EQ(config.seed(), 5u);
  EXPECT_TRUE(config.env().has_id());
  EXPECT_EQ(config.env().id(), "");
}

TEST(ApplyOverride, ErrorsQuoteTheAssignment) {
  EXPECT_EQ(OverrideError("ppo.lr=abc"), "--set ppo.lr=abc: ppo.lr: expected a number, got 'abc'");
  EXPECT_EQ(OverrideError("ppo.lrr=1"), "--set ppo.lrr=1: unknown key 'ppo.lrr'; the nearest is 'ppo.lr'");
  EXPECT_EQ(OverrideError("ppo.lr.x=1"), "--set ppo.lr.x=1: unknown key 'ppo.lr.x'; the nearest is 'ppo.lr'");
  EXPECT_EQ(OverrideError("reinforce.lr=1", "ppo: {lr: 1}"),
            "--set reinforce.lr=1: 'reinforce' is given, but the algorithm of this run is 'ppo'; a run has one");
  EXPECT_EQ(OverrideError("ppo={lr: 1}", "reinforce:"),
            "--set ppo={lr: 1}: 'ppo' is given, but the algorithm of this run is 'reinforce'; a run has one");
  EXPECT_EQ(OverrideError("ppo.lr"), "--set ppo.lr: expected a.b=value");
  EXPECT_THAT(OverrideError("=1"), HasSubstr("unknown key ''"));
  EXPECT_THAT(OverrideError("ppo.=1"), HasSubstr("unknown key 'ppo.'"));
  EXPECT_THAT(OverrideError("ppo.lr="), EndsWith("ppo.lr: expected a number, got nothing"));
  EXPECT_EQ(OverrideError("env.hide="), "--set env.hide=: env.hide: expected a list such as [3, 8-16], got nothing");
  EXPECT_THAT(OverrideError("ppo.lr=nan"), HasSubstr("must be a finite number"));
  EXPECT_THAT(OverrideError("ppo.lr=[1"), StartsWith("--set ppo.lr=[1: "));
}

TEST(ApplyDefaults, GivesEverySettingItsDefault) {
  v1::RunConfig config;
  ApplyDefaults(&config);
  EXPECT_EQ(config.seed(), 1u);
  EXPECT_EQ(config.env().id(), "HalfCheetah-v5");
  EXPECT_THAT(config.model().hidden(), ElementsAre(64, 64));
  EXPECT_EQ(config.model().activation(), v1::ACTIVATION_TANH);
  EXPECT_EQ(config.ppo().lr(), 3e-4);
  EXPECT_EQ(config.ppo().lr_schedule(), v1::LEARNING_RATE_SCHEDULE_LINEAR);
  EXPECT_TRUE(config.ppo().recompute_advantages());
  EXPECT_EQ(config.coordinator().lease_seconds(), 5);
}

TEST(ApplyDefaults, KeepsWhatIsSet) {
  v1::RunConfig config;
  config.set_seed(0);
  config.mutable_ppo()->set_recompute_advantages(false);
  config.mutable_model()->add_hidden(8);
  ApplyDefaults(&config);
  EXPECT_EQ(config.seed(), 0u);
  EXPECT_FALSE(config.ppo().recompute_advantages());
  EXPECT_THAT(config.model().hidden(), ElementsAre(8));
}

TEST(LoadRunConfig, WithoutAFileIsTheDefaults) {
  const absl::StatusOr<v1::RunConfig> config = LoadRunConfig("", {}, 4);
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->rollout().num_envs(), 64u);  // 4 runners x 16.
  EXPECT_EQ(config->name(), "HalfCheetah-v5-s1");
}

TEST(LoadRunConfig, OverridesBeatTheFile) {
  const std::string path = absl::StrCat(testing::TempDir(), "/config_test.", getpid(), ".yaml");
  ASSERT_TRUE(WriteFileSynced(path, "seed: 2\nppo: {lr: 0.1, clip: 0.3}\nenv: {id: uav/Hover-v0}\n").ok());
  const absl::StatusOr<v1::RunConfig> config = LoadRunConfig(path, {"ppo.lr=0.2", "ppo.lr=0.3"}, 1);
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->seed(), 2u);
  EXPECT_EQ(config->ppo().lr(), 0.3);
  EXPECT_EQ(config->ppo().clip(), 0.3);
  EXPECT_EQ(config->name(), "uav-Hover-v0-s2");

  ASSERT_TRUE(WriteFileSynced(path, "rollout: {num_envs: 24}").ok());
  EXPECT_THAT(std::string(LoadRunConfig(path, {}, 1).status().message()),
              StartsWith(path + ":1:21: rollout.num_envs (24)"));
  ASSERT_TRUE(WriteFileSynced(path, std::string((1 << 20) + 1, '#')).ok());
  EXPECT_TRUE(absl::IsInvalidArgument(LoadRunConfig(path, {}, 1).status()));
  std::filesystem::remove(path);
}

TEST(LoadRunConfig, MissingFileIsNotFound) {
  EXPECT_TRUE(absl::IsNotFound(LoadRunConfig("/no/such/run.yaml", {}, 1).status()));
}

TEST(LoadRunConfig, ChecksSettingsAgainstEachOther) {
  EXPECT_EQ(LoadError({"rollout.num_envs=24"}),
            "rollout.num_envs (24) must be a multiple of rollout.envs_per_runner (16)");
  EXPECT_EQ(LoadError({"rollout.num_envs=48"}),
            "rollout.steps_per_iteration (16384) must be a multiple of rollout.num_envs (48)");
  EXPECT_EQ(
      LoadError({"rollout.fragment_steps=100"}),
      "rollout.fragment_steps (100) must divide the steps of each environment in an iteration, steps_per_iteration "
      "/ num_envs (512)");
  EXPECT_EQ(LoadError({"ppo.minibatch_size=16385"}),
            "ppo.minibatch_size (16385) must not exceed rollout.steps_per_iteration (16384)");
  EXPECT_EQ(LoadError({"reinforce.minibatch_size=16385"}),
            "reinforce.minibatch_size (16385) must not exceed rollout.steps_per_iteration (16384)");
  for (const char* mode : {"async", "overlapped"}) {
    EXPECT_EQ(LoadError({"reinforce.lr=0.1", absl::StrCat("sync.mode=", mode)}),
              "sync.mode must be on_policy or on_device with reinforce, which does not correct for data of an older "
              "policy");
  }
  EXPECT_EQ(LoadError({"reinforce.lr=0.1"}), "");
  EXPECT_EQ(LoadError({"reinforce.lr=0.1", "model.memory=gru"}),
            "model.memory must be none with reinforce, which does not train one");
  EXPECT_EQ(LoadError({"model.memory=lstm", "model.shared_trunk=true", "model.critic_memory=separate"}),
            "model.critic_memory must be shared with model.shared_trunk, which has one memory for policy and value");
  EXPECT_EQ(LoadError({"model.memory=lstm", "model.critic_memory=separate"}), "");
  EXPECT_EQ(LoadError({"model.memory=gru", "model.shared_trunk=true", "ppo.sequence_length=7"}), "");
  EXPECT_EQ(LoadError({"coordinator.lease_seconds=1"}),
            "coordinator.lease_seconds (1) must be greater than coordinator.heartbeat_seconds (1)");
  EXPECT_THAT(std::string(LoadRunConfig("", {}, 4000000000).status().message()),
              HasSubstr("rollout.num_envs must be at most 1048576, got 4294967295"));
}

TEST(LoadRunConfig, NameMustBeAPlainFolderName) {
  for (const char* name : {".", "..", "--", "-x", "a/b", "../x", "a b", "\"a\\n\"", "\xc3\xa4"}) {
    EXPECT_THAT(LoadError({absl::StrCat("name=", name)}), HasSubstr("cannot be a folder")) << name;
  }
  EXPECT_EQ(LoadError({"name=Run_1.a-b"}), "");
  EXPECT_THAT(LoadError({absl::StrCat("name=", std::string(201, 'a'))}),
              HasSubstr("it has 201 characters, at most 200"));
}

TEST(ValidateRunConfig, ChecksWhatDidNotComeFromYaml) {
  v1::RunConfig config = LoadRunConfig("", {}, 1).value();
  EXPECT_TRUE(ValidateRunConfig(config).ok());
  const auto error = [](const v1::RunConfig& wrong) { return std::string(ValidateRunConfig(wrong).message()); };

  v1::RunConfig wrong = config;
  wrong.mutable_ppo()->set_lr(std::nan(""));
  EXPECT_EQ(error(wrong), "ppo.lr must be a finite number, got nan");
  wrong = config;
  wrong.mutable_ppo()->clear_lr();
  EXPECT_EQ(error(wrong), "ppo.lr is not set");
  wrong = config;
  wrong.mutable_model()->clear_hidden();
  EXPECT_EQ(error(wrong), "model.hidden is not set");
  wrong = config;
  wrong.mutable_model()->add_hidden(0);
  EXPECT_EQ(error(wrong), "model.hidden must be at least 1, got 0");
  wrong = config;
  wrong.mutable_sync()->set_mode(static_cast<v1::SyncMode>(77));
  EXPECT_EQ(error(wrong), "sync.mode has no meaning: value 77");
  wrong = config;
  wrong.mutable_rollout()->set_num_envs(0);
  EXPECT_EQ(error(wrong), "rollout.num_envs must be at least 1, got 0");
  EXPECT_NE(error(v1::RunConfig()), "");
}

TEST(ToYaml, ReadsBackEqual) {
  v1::RunConfig config = LoadRunConfig("", {"sync.mode=overlapped", "ppo.lr_schedule=kl_adaptive"}, 1).value();
  config.set_name("quotes \" ' : # \n \\ {} ~ true");
  config.set_seed(std::numeric_limits<uint64_t>::max());
  config.mutable_ppo()->set_lr(0.1 + 0.2);  // 0.30000000000000004.
  config.mutable_ppo()->set_gamma(1.0 / 3);
  config.mutable_ppo()->set_adam_epsilon(std::numeric_limits<double>::denorm_min());
  config.mutable_ppo()->set_max_grad_norm(1e9);
  config.mutable_ppo()->set_entropy_coefficient(-0.0);
  v1::RunConfig read;
  const absl::Status status = MergeYaml(ToYaml(config), "saved", &read);
  ASSERT_TRUE(status.ok()) << status << "\n" << ToYaml(config);
  EXPECT_TRUE(MessageDifferencer::Equals(config, read)) << ToYaml(config);
  EXPECT_THAT(ToYaml(config), HasSubstr("\nsync:\n  mode: overlapped\n"));
  EXPECT_THAT(ToYaml(config), HasSubstr("hidden: [64, 64]\n"));
  EXPECT_THAT(ToYaml(config), HasSubstr("max_grad_norm: 1000000000\n"));
  EXPECT_TRUE(std::signbit(read.ppo().entropy_coefficient()));
}

TEST(ToYaml, TextsThatLookLikeOtherThingsStayTexts) {
  for (const char* name : {"", "~", "null", "true", "1e3", "[a]", "{}", "&a", "*a", "!t", "- x", "\x01"}) {
    v1::RunConfig config;
    config.set_name(name);
    v1::RunConfig read;
    const absl::Status status = MergeYaml(ToYaml(config), "saved", &read);
    ASSERT_TRUE(status.ok()) << status;
    EXPECT_TRUE(MessageDifferencer::Equals(config, read)) << ToYaml(config);
  }
}

TEST(ToYaml, LeavesOutWhatIsNotSet) {
  v1::RunConfig config;
  config.mutable_ppo()->set_clip(0.25);
  EXPECT_EQ(ToYaml(config), "ppo:\n  clip: 0.25\n");
  v1::RunConfig read;
  ASSERT_TRUE(MergeYaml(ToYaml(v1::RunConfig()), "saved", &read).ok());
  EXPECT_TRUE(MessageDifferencer::Equals(read, v1::RunConfig()));
}

}  // namespace
}  // namespace skein
