// SPDX-License-Identifier: Apache-2.0
// The page of a sweep in a real browser, from its file and as a running sweep serves it. Screenshots are kept in the
// build folder's artifacts/.
#include <cstdlib>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "sweep/sweep_page.h"
#include "sweep/sweep_record.h"
#include "tests/browser/browser.h"

namespace skein {
namespace {

using testing::Each;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;

// Runs where it is shown, if it is not text.
constexpr char kEvil[] = "<img src=x onerror=\"document.title='taken'\">";

// The corners of each line, in the picture's own units.
constexpr char kLines[] = R"(
  return [...document.querySelectorAll('#parallel polyline')].map((line) => {
    const box = line.getBoundingClientRect();
    return box.width > 50 && getComputedStyle(line).stroke !== 'none' ? line.points.numberOfItems : 0;
  });
)";

// What is wider than the viewport, unless it may be scrolled by itself.
constexpr char kOverflowing[] = R"(
  const width = document.documentElement.clientWidth;
  const wide = [...document.querySelectorAll('main *')].filter(
      (element) => element.getBoundingClientRect().right > width + 0.5 && !element.closest('.wide'));
  if (document.documentElement.scrollWidth > width) wide.push(document.documentElement);
  return wide.map((element) => element.outerHTML.slice(0, 60));
)";

std::vector<std::string> Texts(Browser* browser, const std::string& selector) {
  return browser->Run(
      absl::StrCat("return [...document.querySelectorAll(\"", selector, "\")].map((element) => element.textContent)"));
}

// In each look: axe finds nothing, and nothing is cut off.
void ExpectNoBarriers(Browser* browser, const std::string& name) {
  const char* folder = std::getenv("SKEIN_BIN");
  for (const char* scheme : {"light", "dark"}) {
    for (const int width : {1280, 390, 320}) {
      browser->Look(width, 844, width < 500, scheme);
      EXPECT_THAT(browser->Barriers(), IsEmpty()) << name << ", " << scheme << ", " << width;
      EXPECT_THAT(browser->Run(kOverflowing), IsEmpty()) << name << ", " << width;
      browser->SaveScreenshot(absl::StrCat(folder == nullptr ? "." : folder, "/artifacts/sweep_page_", name, "_",
                                           scheme, "_", width, ".png"));
    }
  }
  browser->Look(1280, 900, false, "light");
}

// A sweep of a number, a choice and a number that only one of the choices has, with rungs at 100, 200 and 400.
class SweepPageTest : public testing::Test {
 protected:
  SweepPageTest() {
    Parameter lr, schedule, target;
    lr.path = "ppo.lr";
    lr.kind = Parameter::Kind::kReal;
    lr.low = 1e-4;
    lr.high = 1e-2;
    lr.log = true;
    schedule.path = "ppo.lr_schedule";
    schedule.choices = {"linear", "cosine", kEvil};
    target.path = "ppo.kl_target";
    target.kind = Parameter::Kind::kReal;
    target.high = 1;
    target.when = Parameter::Condition{1, {2}};
    file_.space.parameters = {lr, schedule, target};
    file_.config.set_name("cheetah");
    file_.config.set_metric("episode_return_mean");
    file_.config.set_goal(v1::SWEEP_GOAL_MAXIMIZE);
    file_.config.mutable_scheduler()->set_kind(v1::SWEEP_SCHEDULE_ASHA);
    file_.config.mutable_scheduler()->set_min_steps(100);
    file_.config.mutable_scheduler()->set_reduction(2);
    scheduler_ = MakeScheduler(file_.config, 400);
    record_ = *SweepRecord::Open(folder_.path() + "/journal.log", file_, "one");
  }

  const Study& study() const { return record_->search(); }
  void Write(const std::vector<nlohmann::json>& records) { ASSERT_TRUE(record_->Write(records).ok()); }

  // A trial with a result at each of its rungs. The schedule decides how good it is.
  void Add(double lr, bool linear, const std::vector<double>& results) {
    const auto number = static_cast<uint32_t>(study().trials().size());
    const Point point = linear ? Point{lr, 0, std::nullopt} : Point{lr, 2, 0.25};
    Write({study().CreateTrial(point, 0, 0, nullptr)});
    for (uint32_t rung = 0; rung < results.size(); ++rung) {
      if (rung > 0) Write({study().Promote(number, rung)});
      Write(study().Report(number, rung, scheduler_->rungs(0)[rung], {results[rung]}, rung == 2));
    }
  }

  // The address of the page's file, as a sweep that is over leaves it.
  std::string PageFile() {
    return "file://" + folder_.Write("sweep.html", SweepPage(file_, study(), *scheduler_, false));
  }

  const ScratchFolder folder_;
  SweepFile file_;
  std::unique_ptr<Scheduler> scheduler_;
  std::unique_ptr<SweepRecord> record_;
};

TEST_F(SweepPageTest, ShowsAxesImportanceAndRungsWithoutANetwork) {
  Add(1e-3, true, {1, 2, 3});
  Add(1e-2, true, {1.25});
  Add(1e-4, true, {1});
  Add(1e-3, false, {5, 7, 11});
  Add(2e-3, false, {5.25, 6});
  Add(5e-3, false, {5});
  Write(study().End(5, TrialState::kPruned, kEvil));
  Write({study().CreateTrial({1e-3, 0, std::nullopt}, 0, 0, nullptr)});  // It has no result yet.
  const std::string page = PageFile();
  Browser browser;
  ASSERT_TRUE(browser.ok());
  browser.Look(1280, 900, false, "light");
  browser.Open(page);

  EXPECT_EQ(browser.Run("return document.title"), "skein sweep cheetah");
  EXPECT_THAT(Texts(&browser, "h1"), ElementsAre("cheetah"));
  EXPECT_THAT(Texts(&browser, "#counts"),
              ElementsAre("2 complete, 3 paused, 1 stopped, 1 running; episode_return_mean"));
  // An axis for each parameter and one for the metric; a line has no corner where its trial has no value.
  EXPECT_EQ(browser.Run("return document.querySelectorAll('#parallel line').length"), 4);
  EXPECT_THAT(browser.Run(kLines).get<std::vector<int>>(), testing::UnorderedElementsAre(3, 3, 3, 4, 4, 4));
  EXPECT_THAT(Texts(&browser, "#parallel > text"),
              ElementsAre("ppo.lr", "0.01", "0.0001", "ppo.lr_schedule", kEvil, "linear", "cosine", "ppo.kl_target",
                          "1", "0", "episode_return_mean", "11", "1"));
  // The best is above all, the worst below, on the last axis; ppo.lr 1e-3 is in the middle of its axis.
  EXPECT_EQ(browser.Run(R"(
    const best = [...document.querySelectorAll('#parallel polyline')].find(
        (line) => line.textContent === 'trial 3: 11').points;
    return [best[0].y, best[3].y];
  )"),
            nlohmann::json({160, 40}));
  // The choice decides nearly all, at the first rung, where all are.
  EXPECT_THAT(Texts(&browser, "#compared"),
              ElementsAre("The share of the spread of the results of 6 trials at 100 env steps that a parameter "
                          "explains by itself."));
  const std::vector<std::string> parameters = Texts(&browser, "#importance tbody th");
  ASSERT_THAT(parameters, SizeIs(3));
  EXPECT_EQ(parameters[0], "ppo.lr_schedule");
  EXPECT_EQ(Texts(&browser, "#importance tbody td")[0], "1.00");
  EXPECT_GT(browser.Run("return document.querySelector('#importance .bar').getBoundingClientRect().width"), 350);
  // A line and a dot for each trial that was judged.
  EXPECT_EQ(browser.Run("return document.querySelectorAll('#rungs polyline').length"), 6);
  EXPECT_EQ(browser.Run("return document.querySelectorAll('#rungs circle').length"), 6);
  EXPECT_THAT(Texts(&browser, "#rungs > text"), ElementsAre("100", "200", "400", "1", "11"));
  EXPECT_THAT(Texts(&browser, "#trials tbody th"), ElementsAre("3", "0", "4", "5", "1", "2", "6"));
  EXPECT_TRUE(browser.Run("return document.getElementById('renewal').hidden"));  // It is over.

  ExpectNoBarriers(&browser, "results");
  // The checker sees what it is there for.
  browser.Run("document.getElementById('parallel').removeAttribute('aria-label')");
  EXPECT_THAT(browser.Barriers(), ElementsAre(testing::StartsWith("svg-img-alt: #parallel")));
  EXPECT_EQ(browser.Run("return document.querySelectorAll('img').length"), 0);
  EXPECT_THAT(browser.Complaints(), IsEmpty());
  EXPECT_THAT(browser.Requests(), Each(page));
}

TEST_F(SweepPageTest, SaysSoWhereNothingIsKnownYet) {
  Browser browser;
  ASSERT_TRUE(browser.ok());
  browser.Look(1280, 900, false, "light");
  browser.Open(PageFile());
  EXPECT_THAT(Texts(&browser, "#counts"), ElementsAre("no trial yet; episode_return_mean"));
  EXPECT_EQ(browser.Run("return document.querySelectorAll('#parallel line').length"), 4);
  EXPECT_EQ(browser.Run("return document.querySelector('main').textContent.includes('Infinity')"), false);
  EXPECT_THAT(Texts(&browser, "#compared"), ElementsAre("Needs results of three trials at one number of env steps."));
  EXPECT_TRUE(browser.Run("return document.getElementById('importance').hidden"));
  ExpectNoBarriers(&browser, "empty");
  Add(1e-3, true, {1});
  browser.Open(PageFile());
  EXPECT_THAT(browser.Run(kLines), ElementsAre(3));
  EXPECT_THAT(browser.Complaints(), IsEmpty());
}

TEST(RunningSweep, ServesItsPageWhichLoadsAgainUnlessToldNotTo) {
  const ScratchFolder folder;
  const std::string space = folder.Write("space.yaml", "sampler: {kind: grid}\nspace:\n  ppo.lr: [1e-3, 1e-4]\n");
  Running sweep("skein", {"sweep", "--env", "CartPole-v1", "--space", space, "--runs-dir", folder.path() + "/runs",
                          "--slots", "1", "--steps", "1e9", "--metrics-listen", "127.0.0.1:0"});
  const std::string address = sweep.WaitForOutput("page and metrics: (http://\\S+)");
  ASSERT_FALSE(address.empty());
  Browser browser;
  ASSERT_TRUE(browser.ok());
  browser.Look(1280, 900, false, "light");
  browser.Open(address);
  const std::string is_marked = "return document.title === 'marked'", box = "document.querySelector('#renewal input')";
  ASSERT_TRUE(browser.WaitFor("return document.querySelectorAll('#trials tbody tr').length === 1"));
  EXPECT_THAT(Texts(&browser, "#counts"), ElementsAre("1 running; episode_return_mean"));
  EXPECT_EQ(browser.Run(absl::StrCat("return ", box, ".checked")), true);
  ExpectNoBarriers(&browser, "running");

  browser.Run("document.title = 'marked'");
  EXPECT_TRUE(browser.WaitFor("return document.title === 'skein sweep space'"));
  browser.Run(absl::StrCat(box, ".click(); document.title = 'marked'"));
  absl::SleepFor(absl::Seconds(11));  // It would have been loaded again by now.
  EXPECT_EQ(browser.Run(is_marked), true);
  browser.Run("location.reload()");  // By its reader.
  ASSERT_TRUE(browser.WaitFor("return document.title === 'skein sweep space'"));
  EXPECT_EQ(browser.Run(absl::StrCat("return ", box, ".checked")), false);

  EXPECT_THAT(browser.Complaints(), IsEmpty());
  for (const std::string& url : browser.Requests()) EXPECT_TRUE(absl::StartsWith(url, address)) << url;
  sweep.Signal(SIGTERM);
  EXPECT_EQ(sweep.WaitForEnd(), 0);
}

}  // namespace
}  // namespace skein
