// SPDX-License-Identifier: Apache-2.0
// Worlds of this process behind the service, with the actors' client and with one that errs.
#include "serve/world_service.h"

#include "absl/synchronization/notification.h"
#include "base/net/grpc_transport.h"
#include "env/external/remote_world.h"
#include "gmock/gmock.h"
#include "tests/env/external/fake_world.h"
#include "tests/testing/wait_until.h"

namespace skein {
namespace {

using testing::HasSubstr;

const EnvSpec kSpec = {
    .id = "exec:fake", .obs_size = 1, .action_size = 1, .action_low = {-1}, .action_high = {1}, .relocatable = false};
constexpr size_t kEnvs = 2;

// A server of worlds that observe the action of each step, or do what `meddle` says.
class Served {
 public:
  using Meddle = std::function<absl::Status(FakeWorld*, WorldRequest)>;

  explicit Served(Meddle meddle = {}, WorldService::Options options = {})
      : service_(WithOpen(std::move(options), std::move(meddle))),
        server_(StartGrpcServer("127.0.0.1:0", &service_, &port_).value()) {}
  ~Served() { server_->Shutdown(std::chrono::system_clock::now()); }

  absl::StatusOr<std::unique_ptr<World>> Open(const std::string& name = "") const {
    return OpenRemoteWorld({.id = "grpc://fake", .address = Address(), .name = name, .count = kEnvs});
  }
  // What the stream ends with after `messages`, and the last answer before.
  absl::Status Say(const std::vector<env::v1::ClientMessage>& messages, env::v1::ServerMessage* answer) const {
    const auto stub = env::v1::Environment::NewStub(OpenChannel(Address()));
    grpc::ClientContext context;
    const auto stream = stub->Serve(&context);
    for (const env::v1::ClientMessage& message : messages) {
      if (!stream->Write(message) || !stream->Read(answer)) break;
    }
    stream->WritesDone();
    return FromGrpc(stream->Finish());
  }

 private:
  std::string Address() const { return absl::StrCat("127.0.0.1:", port_); }
  static WorldService::Options WithOpen(WorldService::Options options, Meddle meddle) {
    options.open = [meddle = std::move(meddle)](const env::v1::Hello& hello, const WorldService::GivenUp&) {
      return std::make_unique<FakeWorld>(kSpec, hello.num_envs(), [meddle](FakeWorld* world, WorldRequest request) {
        for (size_t e = 0; e < world->size(); ++e) {
          world->columns().failed[e] = 0;
          world->Observe(e, request == WorldRequest::kStep ? world->columns().action[e] : -1);
        }
        return meddle ? meddle(world, request) : absl::OkStatus();
      });
    };
    return options;
  }

  WorldService service_;
  int port_ = 0;
  const std::unique_ptr<grpc::Server> server_;
};

env::v1::ClientMessage Hello(uint32_t version = 1, uint32_t envs = kEnvs) {
  env::v1::ClientMessage message;
  message.mutable_hello()->set_version(version);
  message.mutable_hello()->set_num_envs(envs);
  return message;
}

TEST(WorldService, CarriesStepsResetsAndFailures) {
  const Served served([](FakeWorld* world, WorldRequest request) {
    if (request == WorldRequest::kStep && world->columns().action[1] > 0.9f) world->Fail(1, "KeyError");
    return absl::OkStatus();
  });
  const auto world = served.Open();
  ASSERT_TRUE(world.ok()) << world.status();
  EXPECT_EQ((*world)->spec().obs_size, 1);
  const WorldColumns& columns = (*world)->columns();
  std::fill_n(columns.mask, kEnvs, uint8_t{1});
  ASSERT_TRUE((*world)->Exchange(WorldRequest::kReset, absl::Seconds(10)).ok());
  EXPECT_EQ(columns.observation[1], -1);
  columns.action[0] = 0.25f;
  columns.action[1] = 1;
  ASSERT_TRUE((*world)->Exchange(WorldRequest::kStep, absl::Seconds(10)).ok());
  EXPECT_EQ(columns.observation[0], 0.25f);
  EXPECT_EQ(columns.failed[1], 1);
  const auto failures = (*world)->TakeFailures();
  ASSERT_EQ(failures.size(), 1u);
  EXPECT_EQ(failures[0].env(), 1u);
  EXPECT_EQ(failures[0].message(), "KeyError");
  columns.action[1] = 0;
  ASSERT_TRUE((*world)->Exchange(WorldRequest::kStep, absl::Seconds(10)).ok());
  EXPECT_EQ(columns.failed[1], 0);
  EXPECT_TRUE((*world)->TakeFailures().empty());
}

TEST(WorldService, EndsTheStreamOfAWorldThatHasEnded) {
  const Served served([](FakeWorld*, WorldRequest request) {
    return request == WorldRequest::kStep ? absl::DataLossError("its server\nsent garbage") : absl::OkStatus();
  });
  const auto world = served.Open();
  ASSERT_TRUE(world.ok()) << world.status();
  const absl::Status ended = (*world)->Exchange(WorldRequest::kStep, absl::Seconds(10));
  EXPECT_EQ(ended.code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(ended.message(), HasSubstr("its server sent garbage"));
  EXPECT_TRUE(served.Open().ok());
}

TEST(WorldService, RefusesWhatItDoesNotServe) {
  const Served served({}, {.name = "cart"});
  EXPECT_TRUE(served.Open("cart").ok());
  const absl::Status other = served.Open("arm").status();
  EXPECT_EQ(other.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(other.message(), HasSubstr("no environment 'arm'; there is 'cart'"));

  const Served any;
  env::v1::ServerMessage answer;
  EXPECT_TRUE(any.Say({Hello(/*version=*/2)}, &answer).ok());
  EXPECT_EQ(answer.failure().message(), "it speaks version 1 of skein.env.v1");
  EXPECT_TRUE(answer.failure().unusable());
  for (const uint32_t envs : {0u, 65537u}) {
    EXPECT_TRUE(any.Say({Hello(1, envs)}, &answer).ok());
    EXPECT_THAT(answer.failure().message(), HasSubstr("want 1 to 65536"));
  }
}

TEST(WorldService, RefusesMessagesOfAnotherSizeOrKind) {
  const Served served;
  env::v1::ClientMessage step, reset;
  step.mutable_step()->set_action(std::string(4, '\0'));
  step.mutable_step()->set_next_seed(std::string(8, '\0'));
  reset.mutable_reset()->set_mask("\1\1");
  env::v1::ServerMessage answer;
  const absl::Status action = served.Say({Hello(), step}, &answer);
  EXPECT_EQ(action.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(action.message(), "action has 4 bytes, want 8");
  EXPECT_EQ(served.Say({Hello(), reset}, &answer).message(), "seed has 0 bytes, want 8");
  EXPECT_EQ(served.Say({Hello(), Hello()}, &answer).message(), "a message that is neither step nor reset");
  EXPECT_EQ(served.Say({step}, &answer).message(), "the first message is no hello");
}

TEST(WorldService, HasSoManyStreamsAtATime) {
  const Served served({}, {.most_streams = 1});
  auto first = served.Open();
  ASSERT_TRUE(first.ok()) << first.status();
  const absl::Status second = served.Open().status();
  EXPECT_EQ(second.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(second.message(), HasSubstr("it serves 1 env groups already (--max-streams); start another server"));
  first->reset();
  EXPECT_TRUE(WaitUntil([&] { return served.Open().ok(); }));
}

TEST(WorldService, AWorldThatHangsHoldsUpNoOther) {
  absl::Notification hangs, release;
  {
    const Served served([&](FakeWorld* world, WorldRequest request) {
      if (request != WorldRequest::kStep || world->columns().action[0] == 0) return absl::OkStatus();
      hangs.Notify();
      release.WaitForNotification();
      return absl::OkStatus();
    });
    const auto bad = served.Open(), good = served.Open();
    ASSERT_TRUE(bad.ok() && good.ok());
    (*bad)->columns().action[0] = 1;
    EXPECT_EQ((*bad)->Exchange(WorldRequest::kStep, absl::Milliseconds(1)).code(), absl::StatusCode::kDeadlineExceeded);
    hangs.WaitForNotification();
    (*good)->columns().action[0] = 0;
    EXPECT_TRUE((*good)->Exchange(WorldRequest::kStep, absl::Seconds(10)).ok());
    release.Notify();
  }
}

}  // namespace
}  // namespace skein
