// SPDX-License-Identifier: Apache-2.0
#include "sweep/sweep_session.h"

#include <cstdio>
#include <iostream>
#include <memory>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"
#include "base/config/config.h"
#include "base/config/resource_rules.h"
#include "base/net/credentials.h"
#include "base/process/clock.h"
#include "base/process/exit_code.h"
#include "base/process/file.h"
#include "base/process/message_text.h"
#include "base/process/shutdown.h"
#include "base/process/terminal.h"
#include "launch/launch_plan.h"
#include "launch/node_bookings.h"
#include "nlohmann/json.hpp"
#include "sweep/array_places.h"
#include "sweep/first_rung.h"
#include "sweep/known_metrics.h"
#include "sweep/machine_division.h"
#include "sweep/open_suggester.h"
#include "sweep/places.h"
#include "sweep/run_launcher.h"
#include "sweep/search.h"
#include "sweep/search_options.h"
#include "sweep/slot_messages.h"
#include "sweep/status_server.h"
#include "sweep/sweep_display.h"
#include "sweep/sweep_folder.h"
#include "sweep/sweep_page.h"
#include "sweep/sweep_report.h"
#include "sweep/sweep_summary.h"
#include "sweep/sweep_table.h"

namespace skein {
namespace {

constexpr absl::Duration kTick = absl::Milliseconds(100);
constexpr absl::Duration kShow = absl::Seconds(1);
constexpr absl::Duration kFiles = absl::Seconds(5);

// One sweep, from its flags to its report.
class Session {
 public:
  Session(const SweepOptions& options, const absl::Notification* stop)
      : options_(options), stop_(stop), display_(stdout, TerminalWidth(stdout)) {}

  absl::Status Run();
  nlohmann::ordered_json Result(int code) const;

 private:
  absl::Status ReadFiles();
  absl::Status TakePlaces(const LaunchPlan& plan);
  absl::Status OpenFolder();
  // In a job array it waits until no other job leads. Cancelled: until it was told to stop.
  absl::Status OpenRecord(const std::string& journal);
  absl::Status Carry(Search* search);
  absl::Status TestBest();
  // Why the sweep has no outcome although it came to its end; empty: it has one.
  std::string Failure() const;
  absl::Status WriteFiles(bool running);
  void Show(Search* search, absl::Duration now);
  Search::Options SearchOptions() const { return SearchOptionsOf(file_, base_, max_trials_); }

  const SweepOptions& options_;
  const absl::Notification* const stop_;
  SweepDisplay display_;
  Places places_;
  SlotTerms terms_;
  std::unique_ptr<NodeBooking> booking_;  // Null: of no share.
  v1::RunConfig base_;
  SweepFile file_;
  std::string folder_;
  std::unique_ptr<SweepRecord> record_;
  std::unique_ptr<Scheduler> scheduler_, test_scheduler_;
  std::unique_ptr<Suggester> suggester_;
  std::unique_ptr<ArrayPlaces> array_;  // Null: this is no job of an array.
  std::unique_ptr<RunLauncher> launcher_;
  std::unique_ptr<StatusServer> server_;  // Null without --metrics-listen.
  uint32_t max_trials_ = 0;
  // What has been said.
  struct {
    bool share = false;
    std::vector<std::string> places, lent;
  } told_;
  std::optional<SweepTable> table_;  // Of the study that is carried out.
  SweepOutcome outcome_;
};

absl::Status Session::ReadFiles() {
  LaunchOptions launch;
  launch.recipe = "auto";
  launch.env_id = options_.env_id;
  launch.config_path = options_.config_path;
  launch.overrides = options_.overrides;
  launch.runners = "1";  // So that an open number of environments does not depend on the slots.
  launch.device = options_.device;
  if (options_.steps > 0) launch.steps = options_.steps;
  const auto plan = PlanLaunch(launch, 1);
  if (!plan.ok()) return plan.status();
  base_ = plan->config;
  const auto text = ReadFile(options_.space_path, 1 << 20);
  if (!text.ok()) return text.status();
  auto file = ReadSweepFile(*text, options_.space_path, base_, KnownMetrics(base_));
  if (!file.ok()) return file.status();
  file_ = *std::move(file);
  ChooseFirstRung(base_, &file_.config);
  if (!options_.name.empty()) {
    if (absl::Status s = CheckSweepName(options_.name); !s.ok()) return s;
    file_.config.set_name(options_.name);
  }
  return TakePlaces(*plan);
}

absl::Status Session::TakePlaces(const LaunchPlan& plan) {
  terms_.share = ShareOf(file_.config.resources(), "resources");
  auto places = FindPlaces(options_.slots, options_.launcher, terms_.share);
  if (!places.ok()) return places.status();
  places_ = *std::move(places);
  terms_.asked = AskedFor(base_, plan.learners, static_cast<uint32_t>(plan.actor_runners.size()));
  terms_.cores = places_.cores;
  terms_.device = base_.learner().device();
  if (!places_.launcher.empty() || places_.slots == 0) return absl::OkStatus();
  auto booking =
      DivideMachine(file_.config.name(), terms_.share, terms_.asked, terms_.device, options_.slots == "auto", &places_);
  if (!booking.ok())
    return terms_.share.empty() ? booking.status() : Located(options_.space_path, {}, booking.status());
  booking_ = *std::move(booking);
  return absl::OkStatus();
}

absl::Status Session::OpenFolder() {
  folder_ = absl::StrCat(options_.runs_dir, "/", file_.config.name());
  if (!places_.array_job.empty()) {
    if (options_.resume == "never") {
      return absl::InvalidArgumentError("--resume never: each job of an array would begin anew; give another --name");
    }
    auto lent = ArrayPlaces::Lend(folder_ + "/places", places_.array_job, places_.slots);
    if (!lent.ok()) return lent.status();
    array_ = *std::move(lent);
  }
  const auto aside = PrepareSweepFolder(folder_, options_.resume);
  if (!aside.ok()) return aside.status();
  if (!aside->empty()) display_.Say(absl::StrCat("moved the old sweep to ", *aside));
  if (absl::Status s = OpenRecord(folder_ + "/journal.log"); !s.ok()) return s;
  v1::RunConfig base = base_;
  base.clear_name();  // Each training has its own.
  if (absl::Status s = WriteFileAtomically(folder_ + "/base.yaml", ToYaml(base)); !s.ok()) return s;
  return WriteTerms(folder_, terms_);
}

absl::Status Session::OpenRecord(const std::string& journal) {
  for (bool told = false;; told = true) {
    auto record = SweepRecord::Open(journal, file_, Identity(file_, base_));
    if (record.ok()) record_ = *std::move(record);
    if (array_ == nullptr || !absl::IsUnavailable(record.status())) return record.status();
    if (!told) display_.Say("another job of the array leads the sweep; it may train in this one");
    if (stop_->WaitForNotificationWithTimeout(kShow)) return absl::CancelledError("stopped while another job led");
  }
}

absl::Status Session::Run() {
  if (absl::Status s = ReadFiles(); !s.ok()) return s;
  if (!options_.metrics_listen.empty()) {
    auto server = StatusServer::Listen(options_.metrics_listen);
    if (!server.ok()) return server.status();
    server_ = *std::move(server);
    const std::string& address = options_.metrics_listen;
    const std::string host = AnnounceHost(address.substr(0, address.rfind(':')));
    display_.Say(absl::StrCat("page and metrics: ", HttpScheme(), "://", host, ":", server_->port(), "/"));
  }
  if (server_ != nullptr) server_->SetShare(terms_.share);
  scheduler_ = MakeScheduler(file_.config, base_.total_steps());
  if (absl::Status s = OpenFolder(); !s.ok()) return absl::IsCancelled(s) ? absl::OkStatus() : s;
  max_trials_ = file_.config.max_trials() > 0 ? file_.config.max_trials() : scheduler_->default_trials();
  auto suggester =
      OpenSuggester(file_, base_, options_.space_path, folder_, record_->path(), *scheduler_, &max_trials_);
  if (!suggester.ok()) return suggester.status();
  suggester_ = *std::move(suggester);
  launcher_ = std::make_unique<RunLauncher>(RunLauncher::Options{.folder = folder_,
                                                                 .program_folder = options_.program_folder,
                                                                 .metric = file_.config.metric(),
                                                                 .metric_place = file_.metric_place,
                                                                 .total_steps = base_.total_steps(),
                                                                 .slots = places_.slots,
                                                                 .cores_per_slot = places_.cores,
                                                                 .device = options_.device,
                                                                 .launcher = places_.launcher,
                                                                 .gpus = places_.gpus,
                                                                 .places = array_.get(),
                                                                 .share = terms_.share},
                                            &file_.space);
  display_.Say(absl::StrCat("sweep: ", folder_, ", up to ", max_trials_, " trials x ", file_.config.seeds_per_trial(),
                            file_.config.seeds_per_trial() == 1 ? " seed, " : " seeds, ",
                            DescribeSlots(places_, terms_.share)));
  if (places_.slots == 0 && launcher_->slots() == 0) {
    display_.Say(absl::StrCat("waiting for workers: skein worker --sweep ", folder_));
  }
  if (const size_t before = record_->search().trials().size(); before > 0) {
    display_.Say(absl::StrCat("going on with ", before, " trials of the journal"));
  }
  Search search(SearchOptions(), &file_.space, scheduler_.get(), suggester_.get(), record_.get(), launcher_.get());
  absl::Status status = Carry(&search);
  outcome_.out_of_budget = search.out_of_budget();
  if (status.ok() && !outcome_.stopped) status = TestBest();
  if (absl::Status written = WriteFiles(false); status.ok()) status = written;
  display_.Finish();
  terms_.over = !outcome_.stopped;
  if (status.ok()) status = WriteTerms(folder_, terms_);
  if (!status.ok()) return status;
  const std::string failure = Failure();
  outcome_.finished = !outcome_.stopped && !outcome_.out_of_budget && failure.empty();
  std::cout << SummaryText(file_, *record_, *scheduler_, *launcher_, SearchOptions(), folder_, outcome_) << std::flush;
  return failure.empty() ? absl::OkStatus() : absl::InternalError(failure);
}

std::string Session::Failure() const {
  const Study& search = record_->search();
  if (const auto best = BestTrial(search, *scheduler_)) {
    const std::string test = TestFailure(record_->test(), SidesOf(record_->test(), search.trial(*best).point));
    return test.empty() ? "" : absl::StrCat(test, "; the same command tests it again");
  }
  if (outcome_.stopped || outcome_.out_of_budget) return "";
  if (search.trials().empty()) return "there was no trial";
  return absl::StrCat("no trial has a result; trial 0: ", search.trial(0).why);
}

absl::Status Session::Carry(Search* search) {
  absl::Status status;
  table_.emplace(&file_);
  absl::Duration next_show = MonotonicNow(), next_files = next_show;
  bool asked = false;
  while (status.ok() && !search->done()) {
    const absl::Duration now = MonotonicNow();
    if (stop_->HasBeenNotified() && !std::exchange(asked, true)) {
      outcome_.stopped = true;
      display_.Say("stopping: each training writes a checkpoint");
      search->Stop();
    }
    status = search->Step(now);
    outcome_.slots.Observe(MonotonicNow(), launcher_->busy(), launcher_->slots());
    bool news = false;
    for (const std::string& line : search->TakeNews()) {
      display_.Say(line);
      news = true;
    }
    if (!told_.share && !launcher_->held_by().empty()) {
      display_.Say(absl::StrCat("share of each training: ", launcher_->held_by()));
      told_.share = true;
    }
    if (array_ != nullptr && array_->List() != told_.places) {
      told_.places = array_->List();
      display_.Say(absl::StrCat("places in the jobs of the array: ", absl::StrJoin(told_.places, " ")));
    }
    if (launcher_->lent_slots() != told_.lent) {
      told_.lent = launcher_->lent_slots();
      display_.Say(told_.lent.empty() ? "workers lend no slots any more"
                                      : absl::StrCat("slots of workers: ", absl::StrJoin(told_.lent, " ")));
    }
    if (now >= next_show || news) {
      Show(search, now);
      next_show = now + kShow;
    }
    if (now >= next_files && status.ok()) {
      status = WriteFiles(true);
      next_files = now + kFiles;
    }
    if (asked) {
      absl::SleepFor(kTick);
    } else {
      stop_->WaitForNotificationWithTimeout(kTick);
    }
  }
  if (status.ok()) return status;
  // What runs ends with a checkpoint, so that nothing is lost.
  search->Stop();
  const absl::Duration give_up = MonotonicNow() + absl::Seconds(30);
  while (launcher_->busy() > 0 && MonotonicNow() < give_up) {
    launcher_->Poll();
    absl::SleepFor(kTick);
  }
  return status;
}

absl::Status Session::TestBest() {
  const auto best = BestTrial(record_->search(), *scheduler_);
  const uint32_t seeds = file_.config.test_seeds();
  if (!best || seeds == 0) return absl::OkStatus();
  const Point winner = record_->search().trial(*best).point, base(winner.size());  // The base has no values of its own.
  std::vector<Point> points;
  for (const Trial& one : record_->test().trials()) {
    points.push_back(one.point);
    // After more trials another configuration may be the best.
    if (one.state != TrialState::kRunning || one.point == winner || one.point == base) continue;
    const auto end = record_->test().End(one.number, TrialState::kPruned, "another configuration is the best by now");
    if (absl::Status s = record_->Write(end); !s.ok()) return s;
  }
  // What has failed is tried once more by each start of the sweep.
  const TestSides sides = SidesOf(record_->test(), winner);
  const auto add = [&](const std::optional<uint32_t>& side, const Point& point) {
    const TrialState state = side ? record_->test().trial(*side).state : TrialState::kFailed;
    if (state == TrialState::kFailed || state == TrialState::kPruned) points.push_back(point);
  };
  add(sides.base, base);
  add(sides.best, winner);
  display_.Say(absl::StrCat("testing trial ", *best, " and the base configuration on ", seeds, " fresh seeds each"));
  const auto trials = static_cast<uint32_t>(points.size());
  GridSuggester suggester(std::move(points));
  v1::SweepConfig plain;
  test_scheduler_ = MakeScheduler(plain, base_.total_steps());
  Search::Options options;
  options.test = true;
  options.max_trials = trials;
  options.seeds = seeds;
  options.first_seed = file_.config.test_seed();
  Search test(options, &file_.space, test_scheduler_.get(), &suggester, record_.get(), launcher_.get());
  return Carry(&test);
}

absl::Status Session::WriteFiles(bool running) {
  const std::string page = SweepPage(file_, record_->search(), *scheduler_, running);
  if (server_ != nullptr) server_->SetPage(page);
  if (absl::Status s = WriteFileAtomically(folder_ + "/sweep.html", page); !s.ok()) return s;
  return WriteFileAtomically(folder_ + "/sweep.csv",
                             ToCsv(file_.space, record_->search(), *scheduler_, file_.config.seeds_per_trial()));
}

void Session::Show(Search* search, absl::Duration now) {
  const bool test = search->study().id() == 1;
  const SweepWork work = {search->StepsDone(), search->StepsExpected(), search->CoreSeconds(), launcher_->busy(),
                          launcher_->slots()};
  display_.Update(table_->Lines(search->study(), test ? *test_scheduler_ : *scheduler_, work, now), now);
  if (server_ == nullptr) return;
  server_->SetSlots(launcher_->slots(), launcher_->free_slots());
  server_->SetUsage(launcher_->Usage());
  if (!test) server_->Update(search->study(), *scheduler_, work.core_seconds, work.steps_done);
}

nlohmann::ordered_json Session::Result(int code) const {
  nlohmann::ordered_json json = {
      {"sweep_directory", folder_}, {"exit_code", code}, {"trials", nullptr}, {"finished", nullptr},
      {"slots_busy", nullptr},      {"best", nullptr},   {"test", nullptr}};
  if (record_ == nullptr || launcher_ == nullptr) return json;
  json.update(SummaryJson(file_, *record_, *scheduler_, *launcher_, SearchOptions(), outcome_));
  return json;
}

}  // namespace

int RunSweep(const SweepOptions& options, std::string* json) {
  absl::Notification stop;
  ShutdownSignal shutdown;
  shutdown.OnSignal([&stop] { stop.Notify(); });
  Session session(options, &stop);
  const absl::Status status = session.Run();
  const int code = ReportAndExitCode("skein sweep", status);
  if (json != nullptr) *json = session.Result(code).dump(2, ' ', false, nlohmann::json::error_handler_t::replace);
  return code;
}

}  // namespace skein
