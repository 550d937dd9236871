// SPDX-License-Identifier: Apache-2.0
// skein env serve as a user starts it, with the example of a user's project as its environment.
#include <sys/stat.h>

#include <cmath>
#include <csignal>

#include "absl/strings/str_cat.h"
#include "env/external/external_envs.h"
#include "env/external/remote_world.h"
#include "gmock/gmock.h"
#include "tests/cli/scratch_folder.h"
#include "tests/env/external/built_example.h"
#include "tests/testing/program.h"
#include "tests/testing/wait_until.h"

namespace skein {
namespace {

using testing::HasSubstr;

std::string Cart() { return "exec:" + BuiltExample("example_cart_server"); }

// `skein env serve` with further flags.
class EnvServer {
 public:
  explicit EnvServer(const std::vector<std::string>& more = {}, const std::string& id = Cart()) {
    std::vector<std::string> arguments = {"env", "serve", id, "--listen", "127.0.0.1:0"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    program = std::make_unique<Running>("skein", arguments);
    address = program->WaitForOutput("at grpc://(127.0.0.1:[0-9]+)\n");
  }

  absl::StatusOr<std::unique_ptr<World>> Open() const {
    return OpenRemoteWorld({.id = "grpc://" + address, .address = address, .count = 2});
  }
  // The server of a stream, by the name that the kernel has of it.
  std::optional<pid_t> Inner() const { return FindChild(program->pid(), "example_cart_se"); }

  std::unique_ptr<Running> program;
  std::string address;
};

using Envs = std::vector<std::unique_ptr<Env>>;

void ResetAll(const Envs& envs, uint64_t episode) {
  for (size_t e = 0; e < envs.size(); ++e) {
    RandomStream random(1, RandomPurpose::kEnvReset, e, episode);
    envs[e]->Reset(random);
  }
}

// Rewards of one step of two environments, and what they observe then.
std::vector<float> StepAll(const Envs& envs) {
  const float action[2] = {0.5f, -0.25f};
  const uint32_t seeds[2] = {2, 4};
  envs[0]->batch()->Step(action, seeds);
  std::vector<float> seen(6);
  for (size_t e = 0; e < 2; ++e) {
    envs[e]->Step(action + e, &seen[3 * e]);
    envs[e]->Observe(&seen[3 * e + 1]);
  }
  return seen;
}

TEST(EnvServe, StepsAsTheProgramItselfDoes) {
  EnvServer server;
  const auto remote = MakeExternalEnvs("grpc://" + server.address, 2, {});
  const auto local = MakeExternalEnvs(Cart(), 2, {});
  ASSERT_TRUE(remote.ok() && local.ok()) << remote.status() << local.status();
  ResetAll(*remote, 0);
  ResetAll(*local, 0);
  for (int step = 0; step < 10; ++step) EXPECT_EQ(StepAll(*remote), StepAll(*local));
  // In order, also with a stream that is open.
  server.program->Signal(SIGTERM);
  EXPECT_EQ(server.program->WaitForEnd(), 0);
}

TEST(EnvServe, AKilledServerCostsItsEpisodesOnly) {
  EnvServer server;
  const auto envs = MakeExternalEnvs("grpc://" + server.address, 2, {});
  ASSERT_TRUE(envs.ok()) << envs.status();
  ResetAll(*envs, 0);
  EXPECT_TRUE(std::isfinite(StepAll(*envs)[0]));
  const auto inner = server.Inner();
  ASSERT_TRUE(inner.has_value());
  kill(*inner, SIGKILL);
  // A reward that is not finite: VectorEnv truncates the episode.
  const std::vector<float> lost = StepAll(*envs);
  EXPECT_TRUE(std::isnan(lost[0]) && std::isnan(lost[3]));
  ResetAll(*envs, 1);
  EXPECT_TRUE(std::isfinite(StepAll(*envs)[0]));
  EXPECT_NE(server.Inner(), inner);
  EXPECT_THAT(server.program->Output(), HasSubstr("a stream has ended: its server was ended by signal 9"));
}

TEST(EnvServe, AClientThatGivesUpFreesItsPlace) {
  EnvServer server({"--max-streams", "1"});
  auto world = server.Open();
  ASSERT_TRUE(world.ok()) << world.status();
  EXPECT_EQ(server.Open().status().code(), absl::StatusCode::kResourceExhausted);
  const auto inner = server.Inner();
  ASSERT_TRUE(inner.has_value());
  kill(*inner, SIGSTOP);
  EXPECT_EQ((*world)->Exchange(WorldRequest::kStep, absl::Milliseconds(100)).code(),
            absl::StatusCode::kDeadlineExceeded);
  world->reset();
  // Long before the server's own limit of 60 s.
  EXPECT_TRUE(WaitUntil([&] { return server.Open().ok(); }, absl::Seconds(20), absl::Milliseconds(50)));
}

TEST(EnvServe, AStepThatIsGivenUpEndsAtOnce) {
  EnvServer server;
  int asked = 0;
  const auto world =
      OpenRemoteWorld({.id = "grpc://" + server.address, .address = server.address, .count = 2, .given_up = [&asked] {
                         return ++asked > 2;
                       }});
  ASSERT_TRUE(world.ok()) << world.status();
  const auto inner = server.Inner();
  ASSERT_TRUE(inner.has_value());
  kill(*inner, SIGSTOP);
  asked = 0;
  EXPECT_EQ((*world)->Exchange(WorldRequest::kStep, absl::Minutes(10)).code(), absl::StatusCode::kCancelled);
  EXPECT_EQ(asked, 3);
}

TEST(EnvServe, WantsTheToken) {
  const ScratchFolder folder;
  folder.Write("token", "0123456789abcdef\n");
  folder.Write("other", "fedcba9876543210\n");
  const std::string token = folder.path() + "/token", other = folder.path() + "/other";
  for (const std::string& path : {token, other}) ASSERT_EQ(chmod(path.c_str(), 0600), 0);
  EnvServer server({"--token-file", token});
  EXPECT_EQ(server.Open().status().code(), absl::StatusCode::kUnauthenticated);
  const std::vector<std::string> bench = {
      "bench", "env", "--env", "grpc://" + server.address, "--rounds", "1", "--seconds", "0.1", "--threads", "1"};
  const auto with = [&bench](const std::string& file) {
    std::vector<std::string> arguments = bench;
    arguments.insert(arguments.end(), {"--token-file", file});
    return arguments;
  };
  const Ended wrong = RunToEnd("skein", with(other));
  EXPECT_EQ(wrong.code, 64);
  EXPECT_THAT(wrong.err, HasSubstr("the token is not this server's"));
  EXPECT_EQ(RunToEnd("skein", with(token)).code, 0);
}

// Certificates as `skein certs init` makes them.
TEST(EnvServe, ChecksBothSidesCertificates) {
  const ScratchFolder folder;
  const auto made = [&folder](const std::string& name) {
    const std::string path = folder.path() + "/" + name;
    const Ended ended = RunToEnd("skein", {"certs", "init", path});
    EXPECT_EQ(ended.code, 0) << ended.err;
    return std::vector<std::string>{"--tls-cert",       path + "/node.crt", "--tls-key",
                                    path + "/node.key", "--tls-ca",         path + "/ca.crt"};
  };
  const std::vector<std::string> ours = made("ours"), others = made("others");
  EnvServer server(ours);
  const auto bench = [&server](const std::vector<std::string>& credentials) {
    std::vector<std::string> arguments = {"bench",     "env", "--env",     "grpc://" + server.address,
                                          "--rounds",  "1",   "--seconds", "0.1",
                                          "--threads", "1",   "--set",     "env.external.start_timeout_seconds=5"};
    arguments.insert(arguments.end(), credentials.begin(), credentials.end());
    return RunToEnd("skein", arguments);
  };
  const Ended good = bench(ours);
  EXPECT_EQ(good.code, 0) << good.err;
  const Ended plain = bench({});
  EXPECT_EQ(plain.code, 69) << plain.err;
  EXPECT_THAT(plain.err, HasSubstr(server.address));
  const Ended strange = bench(others);  // Of another CA.
  EXPECT_EQ(strange.code, 69) << strange.err;
  EXPECT_EQ(bench(ours).code, 0);  // The refused ones have harmed nobody.
}

TEST(EnvServe, PassesOnWhyALibraryFailed) {
  EnvServer server({}, "plugin:" + BuiltExample("stuck.so"));
  const auto world = server.Open();
  ASSERT_TRUE(world.ok()) << world.status();
  const WorldColumns& columns = (*world)->columns();
  for (size_t e = 0; e < 2; ++e) {
    columns.mask[e] = 1;
    columns.seed[e] = 2;
    columns.action[e] = 0;
  }
  ASSERT_TRUE((*world)->Exchange(WorldRequest::kReset, absl::Seconds(10)).ok());
  EXPECT_TRUE((*world)->TakeFailures().empty());
  for (int step = 0; step < 3; ++step) {
    ASSERT_TRUE((*world)->Exchange(WorldRequest::kStep, absl::Seconds(10)).ok());
  }
  const auto failures = (*world)->TakeFailures();
  ASSERT_EQ(failures.size(), 2);
  for (const env::v1::Failure& failure : failures) EXPECT_EQ(failure.message(), "the valve is stuck after 3 steps");
}

TEST(EnvServe, SaysWhatIsWrongInOneLine) {
  const auto serve = [](const std::string& id, const std::string& listen) {
    return RunToEnd("skein", {"env", "serve", id, "--listen", listen});
  };
  const Ended open = serve(Cart(), "0.0.0.0:0");
  EXPECT_EQ(open.code, 64);
  EXPECT_THAT(open.err, HasSubstr("nothing asks who calls"));
  EXPECT_EQ(serve("exec:/no/such/program", "127.0.0.1:0").code, 65);
  EXPECT_EQ(serve("grpc://127.0.0.1:1", "127.0.0.1:0").code, 65);
  EXPECT_EQ(serve("CartPole-v1", "127.0.0.1:0").code, 64);
  EXPECT_EQ(RunToEnd("skein", {"env", "serve", Cart()}).code, 64);
}

}  // namespace
}  // namespace skein
