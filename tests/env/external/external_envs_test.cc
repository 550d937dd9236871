// SPDX-License-Identifier: Apache-2.0
// The example of a user's project as exec: and plugin:, and programs that are no servers.
#include "env/external/external_envs.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "absl/strings/str_cat.h"
#include "env/env_config.h"
#include "gmock/gmock.h"
#include "spdlog/sinks/ostream_sink.h"
#include "spdlog/spdlog.h"
#include "tests/env/external/built_example.h"

namespace skein {
namespace {

using testing::HasSubstr;

// A program of the shell.
class Script {
 public:
  explicit Script(const std::string& text) : path_(testing::TempDir() + absl::StrCat("/script.", getpid())) {
    std::ofstream(path_) << "#!/bin/sh\n" << text << "\n";
    chmod(path_.c_str(), 0700);
  }
  ~Script() { std::filesystem::remove(path_); }
  std::string id() const { return "exec:" + path_; }

 private:
  const std::string path_;
};

TEST(ExternalOptions, TakeThePythonOfTheNodeUnlessTheSettingNamesOne) {
  const auto python = [](const char* setting) {
    v1::EnvConfig config;
    config.mutable_external()->set_python(setting);
    return MakeEnvOptions(config).external.python;
  };
  const char* const set = std::getenv("SKEIN_PYTHON");
  const std::string before = set == nullptr ? "" : set;
  setenv("SKEIN_PYTHON", "/venv/bin/python", 1);
  EXPECT_EQ(python("python3"), "/venv/bin/python");
  EXPECT_EQ(python("/mine/python"), "/mine/python");
  unsetenv("SKEIN_PYTHON");
  EXPECT_EQ(python("python3"), "python3");
  if (!before.empty()) setenv("SKEIN_PYTHON", before.c_str(), 1);
}

absl::Status Refusal(const std::string& id, absl::Duration timeout = absl::Seconds(20)) {
  ExternalOptions options;
  options.start_timeout = timeout;
  return MakeExternalEnvs(id, 2, options).status();
}

// Observations of `steps` steps of two environments.
std::vector<float> Play(const std::string& id, int steps) {
  const auto envs = MakeExternalEnvs(id, 2, {});
  EXPECT_TRUE(envs.ok()) << envs.status();
  if (!envs.ok()) return {};
  for (size_t e = 0; e < 2; ++e) {
    RandomStream random(1, RandomPurpose::kEnvReset, e, 0);
    (*envs)[e]->Reset(random);
  }
  std::vector<float> seen;
  for (int step = 0; step < steps; ++step) {
    const float action[2] = {0.5f, -0.25f};
    const uint32_t seeds[2] = {2, 4};
    if (EnvBatch* const batch = (*envs)[0]->batch()) batch->Step(action, seeds);
    for (size_t e = 0; e < 2; ++e) {
      float reward = 0, obs[2];
      EXPECT_FALSE((*envs)[e]->Step(action + e, &reward));
      (*envs)[e]->Observe(obs);
      seen.insert(seen.end(), {obs[0], obs[1], reward});
    }
  }
  return seen;
}

TEST(ExternalEnvs, AreTheSameAsAProgramAndAsALibrary) {
  const std::vector<float> program = Play("exec:" + BuiltExample("example_cart_server"), 6);
  EXPECT_EQ(program.size(), 36u);
  EXPECT_EQ(Play("plugin:" + BuiltExample("example_cart.so"), 6), program);
}

TEST(ExternalEnvs, SaySoWhereAProgramIsNoServer) {
  const absl::Status ended = Refusal(Script("exit 3").id());
  EXPECT_EQ(ended.code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(ended.message(), HasSubstr("ended with exit code 3 before it had made the environment"));
  const absl::Status silent = Refusal(Script("exec sleep 30").id(), absl::Milliseconds(200));
  EXPECT_EQ(silent.code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_THAT(silent.message(), HasSubstr("within 0.2 s (env.external.start_timeout_seconds)"));
  EXPECT_EQ(Refusal(Script("printf nonsense >&3; exec sleep 30").id()).code(), absl::StatusCode::kDataLoss);
  EXPECT_EQ(Refusal("exec:no-such-program-anywhere").code(), absl::StatusCode::kNotFound);
}

TEST(ExternalEnvs, SaySoWhereALibraryIsNoPlugin) {
  EXPECT_EQ(Refusal("plugin:./no_such_library.so").code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(Refusal(absl::StrCat("plugin:", BuiltExample("example_cart_server"))).message(),
              HasSubstr("cannot be loaded"));
  ExternalOptions options;
  options.arguments = "{}";
  EXPECT_THAT(MakeExternalEnvs("plugin:" + BuiltExample("example_cart.so"), 1, options).status().message(),
              HasSubstr("the cart takes no arguments, got {}"));
}

TEST(ExternalEnvs, AreRefusedWhereTheyAreOthersThanPlanned) {
  ExternalOptions options;
  options.spec = FindExternalSpec("plugin:" + BuiltExample("example_cart.so"), options).value();
  EXPECT_TRUE(MakeExternalEnvs("plugin:" + BuiltExample("example_cart.so"), 1, options).ok());
  options.spec->obs_size = 3;
  EXPECT_THAT(MakeExternalEnvs("plugin:" + BuiltExample("example_cart.so"), 1, options).status().message(),
              HasSubstr("another one than when the run was planned"));
}

TEST(ExternalEnvs, OfMeasurementsDoNothing) {
  const auto envs = MakeExternalEnvs("exec:" + BuiltExample("example_null_server"), 2, {});
  ASSERT_TRUE(envs.ok()) << envs.status();
  EXPECT_EQ((*envs)[0]->spec().obs_size, 17);
  std::vector<float> actions(12), obs(17, 1);
  const uint32_t seeds[2] = {2, 4};
  for (size_t e = 0; e < 2; ++e) {
    RandomStream random(1, RandomPurpose::kEnvReset, e, 0);
    (*envs)[e]->Reset(random);
  }
  (*envs)[0]->batch()->Step(actions.data(), seeds);
  float reward = 1;
  EXPECT_FALSE((*envs)[1]->Step(actions.data() + 6, &reward));
  (*envs)[1]->Observe(obs.data());
  EXPECT_EQ(reward, 0);
  EXPECT_THAT(obs, testing::Each(0));
}

TEST(ExternalEnvs, OpenForMeasurements) {
  for (const std::string& id :
       {"exec:" + BuiltExample("example_cart_server"), "plugin:" + BuiltExample("example_cart.so")}) {
    const auto world = OpenLocalWorld(id, 2, {});
    ASSERT_TRUE(world.ok()) << world.status();
    (*world)->columns().seed[0] = 1000;
    EXPECT_TRUE((*world)->Exchange(WorldRequest::kBare, absl::Seconds(10)).ok());
  }
  EXPECT_EQ(OpenLocalWorld("grpc://127.0.0.1:1", 1, {}).status().code(), absl::StatusCode::kFailedPrecondition);
}

// A library in this process steps as the same code in a process of its own does.
TEST(ExternalEnvs, ALibraryIsAWorldAsItsServerIs) {
  const auto server = OpenLocalWorld("exec:" + BuiltExample("example_cart_server"), 3, {});
  const auto library = OpenLocalWorld("plugin:" + BuiltExample("example_cart.so"), 3, {});
  ASSERT_TRUE(server.ok() && library.ok()) << server.status() << library.status();
  const WorldRow row((*library)->spec());
  int ended = 0;
  for (int t = 0; t < 600; ++t) {
    std::vector<std::vector<float>> seen;
    for (World* const world : {server->get(), library->get()}) {
      const WorldColumns& columns = world->columns();
      for (uint32_t e = 0; e < 3; ++e) columns.seed[e] = 3 * static_cast<uint32_t>(t) + e;
      std::fill_n(columns.mask, 3, uint8_t{1});
      std::fill_n(columns.action, 3 * row.action, t % 7 < 4 ? 1.0f : 0.0f);
      ASSERT_TRUE(world->Exchange(t == 0 ? WorldRequest::kReset : WorldRequest::kStep, absl::Seconds(10)).ok());
      std::vector<float>& all = seen.emplace_back(columns.observation, columns.observation + 3 * row.observation);
      all.insert(all.end(), columns.reward, columns.reward + 3 * row.agents);
      all.insert(all.end(), columns.terminated, columns.terminated + 3);
      all.insert(all.end(), columns.truncated, columns.truncated + 3);
      ended += columns.terminated[0] + columns.truncated[0];
    }
    ASSERT_EQ(seen[0], seen[1]) << t;
  }
  EXPECT_GT(ended, 0);
}

TEST(ExternalEnvs, OneThatFailsSaysWhy) {
  for (const std::string& id : {"exec:" + BuiltExample("stuck_server"), "plugin:" + BuiltExample("stuck.so")}) {
    const auto world = OpenLocalWorld(id, 2, {});
    ASSERT_TRUE(world.ok()) << world.status();
    const WorldColumns& columns = (*world)->columns();
    const auto ask = [&](WorldRequest request) {
      EXPECT_TRUE((*world)->Exchange(request, absl::Seconds(10)).ok());
      std::vector<std::string> said;
      for (const env::v1::Failure& failure : (*world)->TakeFailures()) {
        said.push_back(absl::StrCat(failure.env(), ": ", failure.message()));
      }
      return said;
    };
    std::fill_n(columns.mask, 2, uint8_t{1});
    columns.seed[0] = 4;
    columns.seed[1] = 7;
    columns.action[0] = columns.action[1] = 0;
    EXPECT_THAT(ask(WorldRequest::kReset),
                testing::ElementsAre(testing::MatchesRegex("1: the pump has no.water for 7")));
    EXPECT_THAT(ask(WorldRequest::kStep), testing::IsEmpty());
    columns.mask[0] = 0;
    columns.seed[1] = 8;
    EXPECT_THAT(ask(WorldRequest::kReset), testing::IsEmpty());
    EXPECT_THAT(ask(WorldRequest::kStep), testing::IsEmpty());
    EXPECT_THAT(ask(WorldRequest::kStep), testing::ElementsAre("0: the valve is stuck after 3 steps")) << id;
    EXPECT_EQ(columns.failed[0], 1);
    EXPECT_EQ(columns.failed[1], 0);
  }
}

TEST(ExternalEnvs, AnActorsLogHasALibrarysReason) {
  std::ostringstream log;
  const auto before = spdlog::default_logger();
  spdlog::set_default_logger(
      std::make_shared<spdlog::logger>("test", std::make_shared<spdlog::sinks::ostream_sink_mt>(log)));
  const auto envs = MakeExternalEnvs("plugin:" + BuiltExample("stuck.so"), 1, {});
  EXPECT_TRUE(envs.ok()) << envs.status();
  if (envs.ok()) {
    const auto seed_of = [](uint64_t n) { return RandomStream(1, RandomPurpose::kEnvReset, 0, n).NextUint32(); };
    uint64_t odd = 0, even = 0;
    while ((seed_of(odd) >> 1) % 2 == 0) ++odd;
    while ((seed_of(even) >> 1) % 2 == 1) ++even;
    RandomStream bad(1, RandomPurpose::kEnvReset, 0, odd), good(1, RandomPurpose::kEnvReset, 0, even);
    try {
      (*envs)[0]->Reset(bad);
      ADD_FAILURE() << "it has begun";
    } catch (const std::runtime_error& error) {
      EXPECT_THAT(error.what(), HasSubstr("the pump has no"));
    }
    (*envs)[0]->Reset(good);
    const float action = 0;
    float reward = 0;
    for (int step = 0; step < 3; ++step) EXPECT_FALSE((*envs)[0]->Step(&action, &reward));
    EXPECT_TRUE(std::isnan(reward));
  }
  spdlog::set_default_logger(before);
  EXPECT_THAT(log.str(), HasSubstr("the valve is stuck after 3 steps; its episode is truncated"));
}

}  // namespace
}  // namespace skein
