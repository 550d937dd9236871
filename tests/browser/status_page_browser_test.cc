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

// Lines of the log on the page.
std::vector<std::string> ShownLog(Browser* browser) {
  return browser->Run("return [...document.querySelectorAll('#log > div')].map((line) => line.textContent)");
}

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
  for (const char* chart :
       {"Return", "Episode length", "Env steps per second", "Policy lag", "Actors’ time", "Learner’s time"}) {
    EXPECT_THAT(drawn, testing::Contains(chart));
  }
  // Of whatever the algorithm tells of its updates.
  const std::vector<std::string> statistics = browser.Run("return Object.keys(runHistory.update_stats)");
  EXPECT_GE(statistics.size(), 8u);
  EXPECT_EQ(browser.Run("return document.querySelectorAll('#charts-update .chart canvas').length"), statistics.size());
  for (const char* chart :
       {"Policy loss", "Value loss", "Entropy", "KL divergence", "Clip fraction", "Learning rate"}) {
    EXPECT_THAT(drawn, testing::Contains(chart));
  }
  EXPECT_THAT(ShownLog(&browser), testing::Contains(testing::ContainsRegex("skein-coordinator.*actor-1 joined")));
  EXPECT_EQ(Shown(&browser, "[data-member='actor-1'] td.member a"), "actor-1");
  // Mode on_policy: whatever is trained between two heartbeats.
  EXPECT_EQ(Shown(&browser, "[data-member='actor-1'] td[data-label='Lag']"), "0");
  const std::string link = browser.Run("return document.querySelector(\"[data-member='actor-1'] a\").href");
  EXPECT_THAT(HttpGet(ParseHostPort(FirstMatch(link, "http://([^/]+)/metrics"))->port, "/metrics").body,
              testing::HasSubstr("\nskein_actor_"));
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

  // The same over env steps: no two points of one x, and no step back.
  browser.Run(
      "document.querySelector('#axis input[value=env_steps]').click(); document.getElementById('config').open = true");
  EXPECT_EQ(browser.Run("return charts[0].x.every((x, i, all) => i === 0 || x > all[i - 1]) && charts[0].x.length > 1"),
            true);
  EXPECT_THAT(browser.Run(kDrawnCharts).get<std::vector<std::string>>(), testing::IsSupersetOf({"Return", "Entropy"}));
  // 9 was lost: a learner went on from 5. Of the two points at 5 the last one is drawn.
  EXPECT_EQ(browser.Run("return new Axis('env_steps').pick({env_steps: [0, 5, 5, 9, 7, 8]})"),
            nlohmann::json({0, 2, 4, 5}));
  browser.WaitFor("return document.getElementById('config-text').textContent.includes('total_steps: 1000000000')");

  for (const char* scheme : {"light", "dark"}) {
    browser.Look(1280, 900, false, scheme);
    EXPECT_THAT(browser.Barriers(), IsEmpty()) << scheme;
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
    EXPECT_THAT(browser.Barriers(), IsEmpty()) << "phone, " << scheme;
    drawn = browser.Run(kDrawnCharts).get<std::vector<std::string>>();
    EXPECT_GE(drawn.size(), 5u);
    browser.SaveScreenshot(Artifact(absl::StrCat("phone_", scheme)));
  }

  // The checker sees what it is there for.
  browser.Run("document.getElementById('bar').removeAttribute('aria-label')");
  EXPECT_THAT(browser.Barriers(), ElementsAre(testing::StartsWith("aria-progressbar-name: #bar")));
  browser.Run("document.getElementById('bar').setAttribute('aria-label', 'x')");

  // Once the run stands still, so do its figures.
  cluster.learner().Signal(SIGTERM);
  EXPECT_EQ(cluster.learner().WaitForEnd(), 0);
  EXPECT_EQ(one->WaitForEnd(), 0);
  EXPECT_EQ(two->WaitForEnd(), 0);
  ASSERT_TRUE(browser.WaitFor("return document.querySelectorAll('[data-member]').length === 0"));
  EXPECT_EQ(Shown(&browser, "#state"), "stopped");
  EXPECT_THAT(browser.Barriers(), IsEmpty()) << "a run that has ended";
  browser.SaveScreenshot(Artifact("ended"));
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

TEST(StatusPage, AfterTheLastActorLeftItSaysThatNoneIsConnected) {
  Cluster cluster({"total_steps=1000000000"});
  cluster.StartCoordinator();
  cluster.StartLearner();
  auto actor = cluster.StartActor();
  Browser browser;
  ASSERT_TRUE(browser.ok());
  browser.Open(absl::StrCat("http://", HttpAddress(&cluster), "/"));
  ASSERT_TRUE(browser.WaitFor("return document.getElementById('state').textContent === 'training'"));
  EXPECT_NE(Shown(&browser, "#eta"), "no actor is connected");
  actor->Signal(SIGTERM);  // As `skein drain`: it leaves in order.
  EXPECT_EQ(actor->WaitForEnd(), 0);
  EXPECT_TRUE(browser.WaitFor("return document.getElementById('eta').textContent === 'no actor is connected'"));
  EXPECT_EQ(Shown(&browser, "#state"), "waiting for data");
  EXPECT_EQ(Shown(&browser, Figure("actors")), "0");
  EXPECT_THAT(browser.Barriers(), IsEmpty());
  actor = cluster.StartActor();
  EXPECT_TRUE(browser.WaitFor("return document.getElementById('state').textContent === 'training'"));
  EXPECT_NE(Shown(&browser, "#eta"), "no actor is connected");
  EXPECT_THAT(browser.Complaints(), IsEmpty());
}

TEST(StatusPage, WhatMembersReportIsTextAndAnAbsentCoordinatorIsTold) {
  Cluster cluster({"coordinator.lease_seconds=600"});
  const std::string evil = "<img src=x onerror=\"document.title='taken'\"><b>bold</b>";
  const ScratchFolder logs;
  const std::string log = logs.Write(
      "log.jsonl",
      nlohmann::json{
          {"time", evil}, {"level", "warning"}, {"program", evil}, {"message", absl::StrCat(evil, "\u202e\x1b[2J")}}
              .dump() +
          "\n");
  cluster.StartCoordinator({"--log-json", log});
  const auto stub = v1::Coordinator::NewStub(OpenChannel(FirstMatch(cluster.coordinator().Output(), "grpc=(\\S+)")));
  for (const v1::Role role : {v1::ROLE_LEARNER, v1::ROLE_ACTOR}) {
    v1::JoinRequest join;
    join.set_protocol_major(kProtocolMajor);
    join.set_role(role);
    join.set_host(evil);
    join.set_data_address("127.0.0.1:1");
    v1::JoinResponse joined;
    {
      grpc::ClientContext context;
      ASSERT_TRUE(stub->Join(&context, join, &joined).ok());
    }
    v1::HeartbeatRequest beat;
    beat.set_member_id(joined.member_id());
    beat.set_generation(joined.generation());
    (*beat.mutable_report()->mutable_stage_seconds())[evil] = 1;
    if (role == v1::ROLE_ACTOR) {
      beat.mutable_report()->set_last_error(evil);
    } else {
      beat.mutable_progress()->set_state(v1::RUN_STATE_TRAINING);
      beat.mutable_progress()->add_warnings(evil);
      (*beat.mutable_progress()->mutable_losses())[evil] = 1;
      (*beat.mutable_progress()->mutable_episode_metrics())[evil] = 1;
    }
    v1::HeartbeatResponse answer;
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
  ASSERT_TRUE(browser.WaitFor("return document.querySelectorAll('#log > div').length > 0"));
  // A statistic and a metric of that name.
  ASSERT_TRUE(
      browser.WaitFor(absl::StrCat("return [...document.querySelectorAll('.chart canvas')].filter((canvas) => "
                                   "canvas.closest('.chart').textContent.includes('taken')).length === 2")));
  EXPECT_EQ(ShownLog(&browser)[0], absl::StrCat(evil, evil, "warning: ", evil, "\u202e [2J"));
  EXPECT_EQ(browser.Run("return document.querySelectorAll('main img, main b:not(.legend b, .message > b)').length"), 0);
  for (const char* scheme : {"dark", "light"}) {
    browser.Look(390, 844, true, scheme);
    EXPECT_THAT(browser.Barriers(), IsEmpty()) << "trouble, " << scheme;
  }
  EXPECT_THAT(browser.Run(kOverflowing), IsEmpty());
  EXPECT_THAT(browser.Complaints(), IsEmpty());
  ExpectOnlyTheCoordinatorWasAsked(&browser, http);

  cluster.coordinator().Kill();
  EXPECT_TRUE(browser.WaitFor("return !document.getElementById('notice').hidden"));
  EXPECT_TRUE(absl::StartsWith(Shown(&browser, "#notice"), "The coordinator does not answer. What is shown is from "));
  EXPECT_THAT(browser.Barriers(), IsEmpty()) << "without a coordinator";
  browser.SaveScreenshot(Artifact("trouble"));
}

}  // namespace
}  // namespace skein
