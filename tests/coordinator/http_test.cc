// SPDX-License-Identifier: Apache-2.0
#include "coordinator/http.h"

#include <limits>

#include "base/telemetry/resource_sampler.h"
#include "coordinator/metrics.h"
#include "gmock/gmock.h"
#include "google/protobuf/util/json_util.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "tests/testing/http_get.h"

namespace skein {
namespace {

using testing::HasSubstr;

v1::StatusResponse SampleStatus() {
  v1::StatusResponse status;
  status.set_run_id("run7");
  status.set_run_name("cheetah");
  status.set_state(v1::RUN_STATE_TRAINING);
  status.mutable_progress()->set_env_steps(5);
  status.mutable_progress()->set_mean_episode_return(std::numeric_limits<double>::quiet_NaN());
  v1::MemberStatus* actor = status.add_members();
  actor->set_member_id("actor-1");
  actor->set_role("actor");
  actor->set_metrics_address("node1:9100");
  v1::MemberStatus* silent = status.add_members();
  silent->set_member_id("actor-2");
  silent->set_role("actor");
  return status;
}

PageSources SampleSources() {
  return {.status = SampleStatus,
          .history = [](size_t count) { return std::to_string(count); },
          .config = "seed: 7\n",
          .log = [] { return "[]\n"; }};
}

TEST(ScrapeTargets, ListsTheCoordinatorAndAllMembersThatServeMetrics) {
  const nlohmann::json expected = {
      {{"targets", {"head:8080"}},
       {"labels", {{"role", "coordinator"}, {"member", "coordinator"}, {"run", "cheetah"}}}},
      {{"targets", {"node1:9100"}}, {"labels", {{"role", "actor"}, {"member", "actor-1"}, {"run", "cheetah"}}}}};
  EXPECT_EQ(nlohmann::json::parse(ScrapeTargets(SampleStatus(), "head:8080")), expected);
}

TEST(ScrapeTargets, NamesTheRunByItsIdIfItHasNoName) {
  v1::StatusResponse status;
  status.set_run_id("run7");
  const nlohmann::json targets = nlohmann::json::parse(ScrapeTargets(status, "head:8080"));
  EXPECT_EQ(targets[0]["labels"]["run"], "run7");
}

TEST(ScrapeTargets, SurvivesTextThatIsNotUtf8) {
  v1::StatusResponse status;
  status.set_run_id("\xff");
  EXPECT_EQ(nlohmann::json::parse(ScrapeTargets(status, "h:1")).size(), 1u);
}

TEST(StatusJson, ReadsBackToTheSameMessage) {
  const std::string json = StatusJson(SampleStatus());
  EXPECT_EQ(nlohmann::json::parse(json)["state"], "RUN_STATE_TRAINING");
  v1::StatusResponse back;
  ASSERT_TRUE(google::protobuf::util::JsonStringToMessage(json, &back).ok());
  EXPECT_EQ(back.run_id(), "run7");
  EXPECT_EQ(back.members_size(), 2);
  EXPECT_TRUE(std::isnan(back.progress().mean_episode_return()));
}

TEST(ServePages, AnswersEveryPathWithItsContentType) {
  absl::StatusOr<std::unique_ptr<HttpServer>> server = HttpServer::Listen("127.0.0.1:0");
  ASSERT_TRUE(server.ok()) << server.status();
  ServePages(server->get(), SampleSources(), "head:8080", std::make_shared<prometheus::Registry>());
  const int port = (*server)->port();
  HttpReply reply = HttpGet(port, "/");
  EXPECT_EQ(reply.status, 200);
  EXPECT_EQ(reply.content_type, "text/html; charset=utf-8");
  EXPECT_THAT(reply.body, HasSubstr("</html>"));
  EXPECT_EQ(HttpGet(port, "/page/skein.js").content_type, "text/javascript; charset=utf-8");
  EXPECT_EQ(HttpGet(port, "/page/skein.css").content_type, "text/css; charset=utf-8");
  EXPECT_EQ(HttpGet(port, "/docs/metrics").content_type, "text/plain; charset=utf-8");
  reply = HttpGet(port, "/api/history");
  EXPECT_EQ(reply.content_type, "application/json");
  EXPECT_EQ(reply.body, "1000");
  EXPECT_EQ(HttpGet(port, "/api/history/recent").body, "60");
  reply = HttpGet(port, "/api/status");
  EXPECT_EQ(reply.content_type, "application/json");
  EXPECT_EQ(nlohmann::json::parse(reply.body)["run_id"], "run7");
  reply = HttpGet(port, "/api/config");
  EXPECT_EQ(reply.content_type, "text/plain; charset=utf-8");
  EXPECT_EQ(reply.body, "seed: 7\n");
  reply = HttpGet(port, "/api/log");
  EXPECT_EQ(reply.content_type, "application/json");
  EXPECT_EQ(reply.body, "[]\n");
  reply = HttpGet(port, "/sd/prometheus");
  EXPECT_EQ(reply.content_type, "application/json");
  EXPECT_EQ(nlohmann::json::parse(reply.body).size(), 2u);
  EXPECT_EQ(HttpGet(port, "/healthz").body, "ok\n");
  EXPECT_EQ(HttpGet(port, "/metrics").status, 200);
  EXPECT_EQ(HttpGet(port, "/nothing").status, 404);
}

TEST(ServePages, SaysWhyThereIsNoLog) {
  absl::StatusOr<std::unique_ptr<HttpServer>> server = HttpServer::Listen("127.0.0.1:0");
  ASSERT_TRUE(server.ok()) << server.status();
  PageSources sources = SampleSources();
  sources.log = [] { return absl::UnavailableError("log.jsonl: No such file or directory"); };
  ServePages(server->get(), sources, "head:8080", std::make_shared<prometheus::Registry>());
  const HttpReply reply = HttpGet((*server)->port(), "/api/log");
  EXPECT_EQ(reply.status, 503);
  EXPECT_EQ(reply.body, "log.jsonl: No such file or directory\n");
}

// Everything that the coordinator exports, after each kind of event.
TEST(CoordinatorMetrics, ArePromtoolClean) {
  auto registry = std::make_shared<prometheus::Registry>();
  CoordinatorMetrics metrics(registry.get());
  ResourceSampler sampler(registry.get());
  MembershipChange change;
  change.member.role = v1::ROLE_ACTOR;
  metrics.MemberChanged(change);
  metrics.MemberChanged(change);
  change.kind = MembershipChange::kExpired;
  metrics.MemberChanged(change);
  metrics.HeartbeatTaken();
  metrics.CallRefused("Join", absl::StatusCode::kAlreadyExists);
  metrics.BarrierWaitBegan();
  metrics.BarrierWaitBegan();
  metrics.BarrierWaitEnded(absl::Milliseconds(20));
  metrics.BarriersTimedOut(1);
  metrics.RunReported(SampleStatus());

  absl::StatusOr<std::unique_ptr<HttpServer>> server = HttpServer::Listen("127.0.0.1:0");
  ASSERT_TRUE(server.ok()) << server.status();
  ServePages(server->get(), SampleSources(), "head:8080", registry);
  const std::string text = HttpGet((*server)->port(), "/metrics").body;
  for (const char* line :
       {"skein_coordinator_members{role=\"actor\"} 1\n", "skein_coordinator_members{role=\"learner\"} 0\n",
        "skein_coordinator_joins_total{role=\"actor\"} 2\n", "skein_coordinator_expirations_total{role=\"actor\"} 1\n",
        "skein_coordinator_heartbeats_total 1\n",
        "skein_coordinator_refusals_total{call=\"Join\",code=\"already_exists\"} 1\n",
        "skein_coordinator_barrier_waiters 1\n", "skein_coordinator_barrier_wait_seconds_count 1\n",
        "skein_coordinator_barrier_timeouts_total 1\n", "skein_coordinator_run_state{state=\"training\"} 1\n",
        "skein_coordinator_run_env_steps 5\n"}) {
    EXPECT_THAT(text, HasSubstr(line));
  }
  std::string output;
  const int code = RunWithInput("promtool check metrics", text, &output);
  ASSERT_NE(code, 127) << "promtool is needed by this test: install the package prometheus";
  EXPECT_EQ(code, 0) << output;
}

}  // namespace
}  // namespace skein
