// SPDX-License-Identifier: Apache-2.0
// The status page in a real browser, against real processes. Screenshots are kept in the build folder's artifacts/.
#include <algorithm>
#include <csignal>
#include <cstdlib>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "base/net/grpc_transport.h"
#include "gmock/gmock.h"
#include "grpcpp/client_context.h"
#include "tests/browser/browser.h"
#include "tests/integration/cluster.h"
#include "tests/testing/http_get.h"

namespace skein {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

// Charts on screen whose canvas shows at least two colours beside the background.
constexpr char kDrawnCharts[] = R"(
  return [...document.querySelectorAll('.chart')].filter((chart) => {
    const canvas = chart.querySelector('canvas');
    if (chart.hidden || !canvas || canvas.width === 0) return false;
    const pixels = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height).data;
    const colours = new Map();
    for (let i = 0; i < pixels.length; i += 4) {
      if (pixels[i + 3] < 200) continue;
      const colour = (pixels[i] << 16) | (pixels[i + 1] << 8) | pixels[i + 2];
      colours.set(colour, (colours.get(colour) ?? 0) + 1);
    }
    return [...colours.values()].filter((count) => count > 50).length >= 2;
  }).map((chart) => chart.querySelector('figcaption').firstChild.textContent);
)";

// What is wider than the viewport.
constexpr char kOverflowing[] = R"(
  const width = document.documentElement.clientWidth;
  const wide = [...document.querySelectorAll('main *')].filter((element) => {
    const box = element.getBoundingClientRect();
    return box.width > 0 && box.right > width + 0.5 && !element.closest('.plot');
  }).map((element) => `${element.tagName}.${element.className} ${element.textContent.slice(0, 40)}`);
  if (document.documentElement.scrollWidth > width) wide.push(`page: ${document.documentElement.scrollWidth}`);
  return wide;
)";

std::string HttpAddress(Cluster* cluster) {
  return FirstMatch(cluster->coordinator().Output(), "http=http://([^/]+)/");
}

std::string Artifact(const std::string& name) {
  const char* folder = std::getenv("SKEIN_BIN");
  return absl::StrCat(folder == nullptr ? "." : folder, "/artifacts/status_page_", name, ".png");
}

// The text of the element without thousands separators.
std::string Shown(Browser* browser, const std::string& selector) {
  const nlohmann::json text =
      browser->Run(absl::StrCat("return document.querySelector(\"", selector, "\")?.textContent ?? '(nothing)'"));
  return absl::StrReplaceAll(text.is_string() ? text.get<std::string>() : "(nothing)", {{",", ""}});
}

std::string Figure(const std::string& name) { return absl::StrCat("[data-figure='", name, "'] .value"); }

double Metric(const std::string& metrics, const std::string& name) {
  const std::string value = FirstMatch(metrics, absl::StrCat("\n", name, " (\\S+)"));
  EXPECT_FALSE(value.empty()) << name;
  return value.empty() ? 0 : std::stod(value);
}

void ExpectOnlyTheCoordinatorWasAsked(Browser* browser, const std::string& http) {
  int asked = 0;
  for (const std::string& url : browser->Requests()) {
    asked += absl::StartsWith(url, absl::StrCat("http://", http, "/api/")) ? 1 : 0;
    EXPECT_TRUE(absl::StartsWith(url, absl::StrCat("http://", http, "/")) || absl::StartsWith(url, "data:")) << url;
  }
  EXPECT_GT(asked, 1);
}

TEST(StatusPage, ShowsARealRunAsItsMetricsTellIt) {
  Cluster cluster({"total_steps=1000000000"});
  cluster.StartCoordinator();
  cluster.StartLearner();
  const auto one = cluster.StartActor(), two = cluster.StartActor();
  const std::string http = HttpAddress(&cluster);
  const int port = ParseHostPort(http)->port;
  Browser browser;
  ASSERT_TRUE(browser.ok());
  browser.Look(1280, 900, false, "light");
  browser.Open(absl::StrCat("http://", http, "/"));

  ASSERT_TRUE(browser.WaitFor("return document.querySelectorAll('[data-member]').length === 3"));
  ASSERT_TRUE(browser.WaitFor("return document.getElementById('state').textContent === 'training'"));
  // Enough of it that the charts have something to show.
  ASSERT_TRUE(browser.WaitFor("return runHistory !== null && runHistory.seconds.length >= 12"));
  std::vector<std::string> drawn = browser.Run(kDrawnCharts);
  for (const char* chart : {"Return", "Env steps per second", "Policy lag", "Actors’ time", "Learner’s time"}) {
    EXPECT_THAT(drawn, testing::Contains(chart));
  }
  EXPECT_THAT(browser.Run("return [...document.querySelectorAll('[data-member]')].map((row) => row.dataset.member)")
                  .get<std::vector<std::string>>(),
              ElementsAre("actor-1", "actor-2", "learner-0"));
  EXPECT_EQ(Shown(&browser, Figure("actors")), "2");
  // The page lags behind the run by its period and a heartbeat: it overtakes what the metrics have just said.
  const double before = Metric(HttpGet(port, "/metrics").body, "skein_coordinator_run_env_steps");
  EXPECT_GT(before, 0);
  const auto steps_shown = [&] { return std::stod(Shown(&browser, "#steps")); };
  EXPECT_TRUE(browser.WaitFor(absl::StrCat(
      "return Number(document.getElementById('steps').textContent.split(' ')[0].replaceAll(',', '')) >= ", before)));
  EXPECT_LE(steps_shown(), Metric(HttpGet(port, "/metrics").body, "skein_coordinator_run_env_steps"));

  for (const char* scheme : {"light", "dark"}) {
    browser.Look(1280, 900, false, scheme);
    browser.WaitFor("return document.querySelector('.chart canvas').getBoundingClientRect().width > 300");
    EXPECT_THAT(browser.Run(kOverflowing), IsEmpty());
    browser.SaveScreenshot(Artifact(absl::StrCat("desktop_", scheme)));
    for (const int width : {920, 600, 320}) {
      browser.Look(width, 800, false, scheme);
      EXPECT_THAT(browser.Run(kOverflowing), IsEmpty()) << width;
    }
    browser.Look(390, 844, true, scheme);
    browser.WaitFor("return document.querySelector('.chart canvas').getBoundingClientRect().width < 390");
    EXPECT_EQ(browser.Run("return document.documentElement.clientWidth"), 390);
    EXPECT_THAT(browser.Run(kOverflowing), IsEmpty());
    drawn = browser.Run(kDrawnCharts).get<std::vector<std::string>>();
    EXPECT_GE(drawn.size(), 5u);
    browser.SaveScreenshot(Artifact(absl::StrCat("phone_", scheme)));
  }

  // Once the run stands still, so do its figures.
  cluster.learner().Signal(SIGTERM);
  EXPECT_EQ(cluster.learner().WaitForEnd(), 0);
  EXPECT_EQ(one->WaitForEnd(), 0);
  EXPECT_EQ(two->WaitForEnd(), 0);
  ASSERT_TRUE(browser.WaitFor("return document.querySelectorAll('[data-member]').length === 0"));
  EXPECT_EQ(Shown(&browser, "#state"), "stopped");
  const std::string metrics = HttpGet(port, "/metrics").body;
  EXPECT_EQ(steps_shown(), Metric(metrics, "skein_coordinator_run_env_steps"));
  EXPECT_EQ(std::stod(Shown(&browser, Figure("iteration"))), Metric(metrics, "skein_coordinator_run_iteration"));
  EXPECT_NEAR(std::stod(Shown(&browser, Figure("return"))),
              Metric(metrics, "skein_coordinator_run_mean_episode_return"), 0.06);
  EXPECT_NEAR(std::stod(Shown(&browser, Figure("lag"))),
              Metric(metrics, "skein_coordinator_run_mean_policy_lag_versions"), 0.01);
  EXPECT_EQ(std::stod(Shown(&browser, "#account dd:nth-of-type(2)")),
            Metric(metrics, "skein_coordinator_run_account_env_steps\\{fate=\"trained\"\\}"));

  EXPECT_THAT(browser.Complaints(), IsEmpty());
  ExpectOnlyTheCoordinatorWasAsked(&browser, http);
}

TEST(StatusPage, WhatMembersReportIsTextAndAnAbsentCoordinatorIsTold) {
  Cluster cluster({"coordinator.lease_seconds=600"});
  cluster.StartCoordinator();
  const std::string evil = "<img src=x onerror=\"document.title='taken'\"><b>bold</b>";
  const auto stub = v1::Coordinator::NewStub(OpenChannel(FirstMatch(cluster.coordinator().Output(), "grpc=(\\S+)")));
  v1::JoinRequest join;
  join.set_protocol_major(kProtocolMajor);
  join.set_role(v1::ROLE_ACTOR);
  join.set_host(evil);
  v1::JoinResponse joined;
  {
    grpc::ClientContext context;
    ASSERT_TRUE(stub->Join(&context, join, &joined).ok());
  }
  v1::HeartbeatRequest beat;
  beat.set_member_id(joined.member_id());
  beat.set_generation(joined.generation());
  beat.mutable_report()->set_last_error(evil);
  (*beat.mutable_report()->mutable_stage_seconds())[evil] = 1;
  v1::HeartbeatResponse answer;
  {
    grpc::ClientContext context;
    ASSERT_TRUE(stub->Heartbeat(&context, beat, &answer).ok());
  }
  join.set_role(v1::ROLE_LEARNER);
  join.set_ranks(1);
  {
    grpc::ClientContext context;
    ASSERT_TRUE(stub->Join(&context, join, &joined).ok());
  }
  beat.set_member_id(joined.member_id());
  beat.set_generation(joined.generation());
  beat.clear_report();
  beat.mutable_progress()->add_warnings(evil);
  {
    grpc::ClientContext context;
    ASSERT_TRUE(stub->Heartbeat(&context, beat, &answer).ok());
  }
  const std::string http = HttpAddress(&cluster);
  Browser browser;
  ASSERT_TRUE(browser.ok());
  browser.Look(390, 844, true, "light");
  browser.Open(absl::StrCat("http://", http, "/"));
  ASSERT_TRUE(browser.WaitFor("return document.querySelectorAll('tr.complaint').length === 1"));
  EXPECT_EQ(Shown(&browser, "tr.complaint"), evil);
  EXPECT_EQ(Shown(&browser, "#error-text"), absl::StrCat("actor-1: ", evil));
  EXPECT_EQ(Shown(&browser, "#warning-list li"), evil);
  EXPECT_EQ(browser.Run("return document.querySelectorAll('main img, main b:not(.legend b)').length"), 0);
  EXPECT_THAT(browser.Run(kOverflowing), IsEmpty());
  EXPECT_THAT(browser.Complaints(), IsEmpty());
  ExpectOnlyTheCoordinatorWasAsked(&browser, http);

  cluster.coordinator().Kill();
  EXPECT_TRUE(browser.WaitFor("return !document.getElementById('notice').hidden"));
  EXPECT_TRUE(absl::StartsWith(Shown(&browser, "#notice"), "The coordinator does not answer. What is shown is from "));
}

}  // namespace
}  // namespace skein
