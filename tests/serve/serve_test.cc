// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <thread>

#include "absl/synchronization/notification.h"
#include "base/net/grpc_transport.h"
#include "base/process/clock.h"
#include "nlohmann/json.hpp"
#include "prometheus/registry.h"
#include "serve/http_actions.h"
#include "serve/policy_service.h"
#include "serve/policy_source.h"
#include "tests/cli/scratch_folder.h"
#include "tests/export/reference_policy.h"

namespace skein {
namespace {

using nlohmann::json;
using testing::HasSubstr;

std::string Bytes(const std::vector<float>& values) {
  return std::string(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float));
}

// A served reference policy.
struct Served {
  explicit Served(const std::string& name, ActionServer::Options options = {})
      : reference(MakeReference(name, folder.path())),
        server(options, LoadServedPolicy(reference.checkpoint).value(), &metrics) {}

  std::vector<float> Observation(int step) const {
    const auto size = static_cast<size_t>(reference.actor->observation_size());
    const auto begin = reference.observations.begin() + static_cast<std::ptrdiff_t>(step * size);
    return std::vector<float>(begin, begin + static_cast<std::ptrdiff_t>(size));
  }
  std::vector<float> Action(int step) const {
    const auto size = static_cast<size_t>(reference.actor->action_size());
    const auto begin = reference.actions.begin() + static_cast<std::ptrdiff_t>(step * size);
    return std::vector<float>(begin, begin + static_cast<std::ptrdiff_t>(size));
  }
  absl::StatusOr<std::vector<float>> Act(Step step) {
    absl::StatusOr<Acted> answer = absl::InternalError("not answered");
    absl::Notification answered;
    server.Act(std::move(step), [&](absl::StatusOr<Acted> acted) {
      answer = std::move(acted);
      answered.Notify();
    });
    answered.WaitForNotification();
    if (!answer.ok()) return answer.status();
    return answer->actions;
  }

  const ScratchFolder folder;
  const ReferencePolicy reference;
  prometheus::Registry registry;
  ServeMetrics metrics{&registry};
  ActionServer server;
};

class ServedPolicies : public testing::TestWithParam<std::string> {};

TEST_P(ServedPolicies, ActAsSkeinDoesWithTheStateOfEachSession) {
  Served served(GetParam());
  // Two sessions that are some steps apart.
  for (int step = 0; step < 300; ++step) {
    for (const auto& [session, behind] : {std::pair{"a", 0}, std::pair{"b", 50}}) {
      const int at = step - behind;
      if (at < 0) continue;
      const auto action = served.Act(
          {.session = session, .observations = served.Observation(at), .resets = {served.reference.resets[at]}});
      ASSERT_TRUE(action.ok()) << action.status();
      ASSERT_EQ(*action, served.Action(at)) << session << " at " << at;
    }
  }
}

TEST_P(ServedPolicies, ActTheSameInBatches) {
  Served served(GetParam(), {.batch_wait = absl::Milliseconds(1), .batch_rows = 4});
  std::vector<std::thread> clients;
  for (int client = 0; client < 6; ++client) {
    clients.emplace_back([&served, client] {
      for (int step = 0; step < 100; ++step) {
        const auto action = served.Act({.session = absl::StrCat("client ", client),
                                        .observations = served.Observation(step),
                                        .resets = {served.reference.resets[step]}});
        ASSERT_TRUE(action.ok()) << action.status();
        ASSERT_EQ(*action, served.Action(step)) << step;
      }
    });
  }
  for (std::thread& client : clients) client.join();
}

INSTANTIATE_TEST_SUITE_P(Policies, ServedPolicies,
                         testing::Values("tanh", "elu_transformed", "relu_choices", "gru", "lstm_choices"),
                         [](const auto& info) { return info.param; });

TEST(ActionServer, RefusesWhatDoesNotFit) {
  Served served("gru", {.most_sessions = 2, .session_idle = absl::Hours(1)});
  const auto code = [&](Step step) { return served.Act(std::move(step)).status().code(); };
  const std::vector<float> good = served.Observation(0);
  std::vector<float> nan = good;
  nan.back() = NAN;
  EXPECT_EQ(code({.observations = {}}), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(code({.observations = {1, 2}}), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(code({.observations = nan}), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(code({.observations = good, .resets = {0, 1}}), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(code({.session = std::string(201, 'x'), .observations = good}), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(code({.session = "a", .observations = good}), absl::StatusCode::kOk);
  std::vector<float> two = good;
  two.insert(two.end(), good.begin(), good.end());
  EXPECT_EQ(code({.session = "a", .observations = two}), absl::StatusCode::kInvalidArgument);  // It has one row.
  EXPECT_EQ(code({.session = "b", .observations = two}), absl::StatusCode::kOk);
  EXPECT_EQ(code({.session = "c", .observations = good}), absl::StatusCode::kResourceExhausted);
  EXPECT_TRUE(served.server.EndSession("b").ok());
  EXPECT_EQ(code({.session = "c", .observations = good}), absl::StatusCode::kOk);
  EXPECT_EQ(code({.observations = good}), absl::StatusCode::kOk);
}

TEST(ActionServer, NamesThePolicyThatChoseTheAction) {
  Served served("tanh", {.batch_wait = absl::Seconds(20), .batch_rows = 2});
  const std::shared_ptr<const ServedPolicy> first = served.server.policy();
  auto newer = std::make_shared<ServedPolicy>(*first);
  newer->env_steps = first->env_steps + 1;
  std::vector<uint64_t> env_steps(2);
  absl::Notification answered[2];
  // Both share a pass. A newer policy comes before the second has its answer.
  for (int i = 0; i < 2; ++i) {
    served.server.Act({.observations = served.Observation(i)}, [&, i](absl::StatusOr<Acted> acted) {
      EXPECT_TRUE(served.server.Replace(newer).ok());
      env_steps[static_cast<size_t>(i)] = acted->policy->env_steps;
      answered[i].Notify();
    });
  }
  for (const absl::Notification& one : answered) one.WaitForNotification();
  EXPECT_THAT(env_steps, testing::Each(first->env_steps));
}

TEST(SessionTable, IsTakenByOneAndForgetsTheIdleWhereThereAreTooMany) {
  SessionTable table(1, absl::Seconds(10));
  Session* const session = table.Take("a", absl::Seconds(0)).value();
  session->rows = 1;
  EXPECT_EQ(table.Take("a", absl::Seconds(0)).status().code(), absl::StatusCode::kAborted);
  EXPECT_EQ(table.End("a").code(), absl::StatusCode::kAborted);
  table.Return("a", absl::Seconds(1));
  EXPECT_EQ(table.Take("b", absl::Seconds(9)).status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_TRUE(table.Take("b", absl::Seconds(12)).ok());
  EXPECT_EQ(table.size(), 1u);
}

TEST(ActionServer, SamplesByTheSeed) {
  const auto sample = [](uint64_t seed) {
    Served served("tanh", {.seed = seed});
    return served.Act({.observations = served.Observation(0), .sample = true}).value();
  };
  EXPECT_EQ(sample(1), sample(1));
  EXPECT_NE(sample(1), sample(2));
}

TEST(PolicyService, AnswersOneByOneAndInTurn) {
  Served served("lstm_choices");
  PolicyService service(&served.server);
  int port = 0;
  const auto server = StartGrpcServer("127.0.0.1:0", {&service}, &port).value();
  const auto stub = v1::PolicyServer::NewStub(OpenChannel(absl::StrCat("127.0.0.1:", port)));
  const auto request = [&](const char* session, int step) {
    v1::ActRequest act;
    act.set_session(session);
    act.set_observations(Bytes(served.Observation(step)));
    act.set_resets(std::string(1, static_cast<char>(served.reference.resets[step])));
    return act;
  };
  const auto choice = [](const v1::ActResponse& response) {
    int32_t value = -1;
    EXPECT_EQ(response.actions().size(), sizeof(value));
    std::memcpy(&value, response.actions().data(), sizeof(value));
    return static_cast<float>(value);
  };
  grpc::ClientContext turns;
  const auto stream = stub->ActInTurn(&turns);
  for (int step = 0; step < 100; ++step) {
    grpc::ClientContext context;
    v1::ActResponse response;
    ASSERT_TRUE(stub->Act(&context, request("one by one", step), &response).ok());
    EXPECT_EQ(choice(response), served.Action(step)[0]);
    EXPECT_EQ(response.env_steps(), 4096u);
    ASSERT_TRUE(stream->Write(request("in turn", step)) && stream->Read(&response));
    EXPECT_EQ(choice(response), served.Action(step)[0]);
  }
  v1::ActRequest bad;
  bad.set_observations("abc");
  v1::ActResponse response;
  stream->Write(bad);
  EXPECT_FALSE(stream->Read(&response));
  EXPECT_EQ(stream->Finish().error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  grpc::ClientContext context, other;
  v1::DescribeResponse described;
  ASSERT_TRUE(stub->Describe(&context, {}, &described).ok());
  EXPECT_EQ(described.env_id(), "CartPole-v1");
  EXPECT_TRUE(described.discrete());
  EXPECT_EQ(described.observation_size(), 4u);
  EXPECT_EQ(described.digest(), served.reference.actor->portable().digest);
  v1::EndSessionRequest end;
  end.set_session("one by one");
  v1::EndSessionResponse ended;
  EXPECT_TRUE(stub->EndSession(&other, end, &ended).ok());
}

TEST(PolicyService, AnswersAsManyCallsAsAClientMakes) {
  Served served("tanh");
  PolicyService service(&served.server);
  const std::string address = "127.0.0.1:0";
  int port = 0;
  const auto server = StartGrpcServer(address, {&service}, &port, ActionServerLimits(address)).value();
  const auto stub = v1::PolicyServer::NewStub(OpenChannel(absl::StrCat("127.0.0.1:", port)));
  v1::ActRequest request;
  request.set_observations(Bytes(served.Observation(0)));
  // Any other server has 128 calls at once and 2,000 a second: these would use that up unless one took half a
  // millisecond.
  for (int call = 0; call < 3000; ++call) {
    grpc::ClientContext context;
    v1::ActResponse response;
    const grpc::Status status = stub->Act(&context, request, &response);
    ASSERT_TRUE(status.ok()) << call << ": " << status.error_message();
  }
}

TEST(ActionServerLimits, AreThoseOfAnyServerWhereNobodyAsksWhoCalls) {
  Credentials token, open;
  token.token = "0123456789abcdef";
  open.insecure = true;
  EXPECT_EQ(ActionServerLimits("0.0.0.0:7080", open).calls_per_second, ServerLimits().calls_per_second);
  EXPECT_EQ(ActionServerLimits("0.0.0.0:7080", token).calls_per_second, 100000);
  EXPECT_EQ(ActionServerLimits("127.0.0.1:7080", open).calls_per_second, 100000);
}

TEST(ActionsByJson, AreThoseOfTheSession) {
  Served served("gru");
  for (int step = 0; step < 20; ++step) {
    const json request = {
        {"session", "a"}, {"observation", served.Observation(step)}, {"reset", served.reference.resets[step] == 1}};
    const HttpServer::Response response = ActByJson(&served.server, request.dump());
    ASSERT_EQ(response.status, 200) << response.body;
    EXPECT_FLOAT_EQ(json::parse(response.body)["action"][0].get<float>(), served.Action(step)[0]);
  }
  const json two = {{"observations", {served.Observation(0), served.Observation(1)}}};
  EXPECT_EQ(json::parse(ActByJson(&served.server, two.dump()).body)["actions"].size(), 2u);
  for (const char* bad : {"", "[]", "{\"observation\": 3}", "{\"observation\": [\"x\"]}", "{\"observation\": [1]}",
                          "{\"observations\": [[1]]}", "{\"x\": 1}", "{\"reset\": 1}", "{\"observation\": [1e999, 2]}",
                          "{\"observation\": [NaN]}"}) {
    const HttpServer::Response response = ActByJson(&served.server, bad);
    EXPECT_EQ(response.status, 400) << bad;
    EXPECT_TRUE(json::parse(response.body)["error"].is_string()) << bad;
  }
  const auto error = [&](const std::string& body) { return ActByJson(&served.server, body).body; };
  EXPECT_THAT(error("{\"observation\": [NaN]}"), testing::HasSubstr("[N'"));
  EXPECT_THAT(error("{\"observation\": [1e999]}"), testing::HasSubstr("number overflow parsing '1e999'"));
  json joined = served.Observation(0);
  for (const float number : served.Observation(1)) joined.push_back(number);
  EXPECT_THAT(error(json{{"observation", joined}}.dump()), testing::HasSubstr("observations for more rows"));
  json both = two;
  both["observation"] = served.Observation(0);
  const HttpServer::Response response = ActByJson(&served.server, both.dump());
  EXPECT_EQ(response.status, 400);
  EXPECT_THAT(response.body, testing::HasSubstr("give one of them"));
}

TEST(PolicySource, GivesNewerCheckpointsAndKeepsTheOldWhereTheyDoNotFit) {
  Served served("tanh");
  const ScratchFolder others;
  const ReferencePolicy unclipped = MakeReference("unclipped", others.path());  // The same sizes.
  const ReferencePolicy choices = MakeReference("relu_choices", others.path());
  const auto put = [&](const ReferencePolicy& reference, const std::string& name) {
    namespace fs = std::filesystem;
    const fs::path checkpoints = fs::path(served.reference.checkpoint) / "checkpoints";
    fs::copy(fs::canonical(fs::path(reference.checkpoint) / "checkpoints" / "latest"), checkpoints / name);
    fs::create_symlink(name, checkpoints / "next");
    fs::rename(checkpoints / "next", checkpoints / "latest");
  };
  const auto wait_for = [&](const std::string& digest) {
    for (int i = 0; i < 2000 && served.server.policy()->digest != digest; ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    return served.server.policy()->digest;
  };
  const std::string newer = unclipped.actor->portable().digest;
  ASSERT_NE(served.server.policy()->digest, newer);
  PolicySource source(served.reference.checkpoint, absl::Milliseconds(5), &served.server, &served.metrics);
  put(unclipped, "step_000000005000");
  EXPECT_EQ(wait_for(newer), newer);
  put(choices, "step_000000006000");  // Of another environment.
  std::this_thread::sleep_for(std::chrono::milliseconds(200));
  EXPECT_EQ(served.server.policy()->digest, newer);
}

}  // namespace
}  // namespace skein
