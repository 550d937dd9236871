// SPDX-License-Identifier: Apache-2.0
#include "cli/run_supervisor.h"

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "base/config/run_state_name.h"
#include "base/net/backoff.h"
#include "base/net/grpc_transport.h"
#include "base/process/clock.h"
#include "base/process/exit_code.h"
#include "base/process/restart_budget.h"
#include "launch/coordinator_addresses.h"

namespace skein {
namespace {

// How long a rank that failed may outlive those that lost it.
constexpr absl::Duration kCauseShows = absl::Seconds(1);
constexpr absl::Duration kWatchPeriod = absl::Milliseconds(100);
constexpr absl::Duration kStatusPeriod = absl::Seconds(1);
constexpr absl::Duration kPollDeadline = absl::Milliseconds(500);
constexpr absl::Duration kCoordinatorStart = absl::Seconds(15);
// After the learner has ended.
constexpr absl::Duration kActorStop = absl::Milliseconds(1500);
constexpr absl::Duration kCoordinatorStop = absl::Seconds(1);
// After the learner has ended by itself: time for actors to receive the end.
constexpr absl::Duration kActorGrace = absl::Seconds(3);
constexpr absl::Duration kRestartWindow = absl::Minutes(1);
constexpr size_t kRestartLimit = 3;
// How an actor ends that was asked to leave the run.
constexpr int kDrained = 3;

// Starting the actor again would end the same way.
bool IsUsersMistake(int code) { return code == kExitUsage || code == kExitData; }

// Whether there were learners and there is none now.
bool HaveLeft(const v1::StatusResponse& status) {
  const bool ended = status.state() == v1::RUN_STATE_FINISHED || status.state() == v1::RUN_STATE_STOPPED ||
                     status.state() == v1::RUN_STATE_FAILED;
  return ended && std::none_of(status.members().begin(), status.members().end(),
                               [](const v1::MemberStatus& member) { return member.role() == "learner"; });
}

bool FinishedElsewhere(const std::optional<v1::StatusResponse>& status) {
  return status && status->state() == v1::RUN_STATE_FINISHED && HaveLeft(*status);
}

// Whether there is nothing left to collect, though learners may still write the last checkpoint.
bool IsTrained(const std::optional<v1::StatusResponse>& status) {
  if (!status) return false;
  const v1::RunProgress& progress = status->progress();
  return status->state() == v1::RUN_STATE_FINISHED ||
         (progress.target_env_steps() > 0 && progress.env_steps() >= progress.target_env_steps());
}

}  // namespace

struct RunSupervisor::ActorSlot {
  std::string name;
  uint32_t runners = 1;
  std::unique_ptr<Child> child;  // Null while it waits for restart_at, and once drained.
  bool drained = false;
  absl::Duration restart_at;
  RestartBudget budget{kRestartLimit, kRestartWindow};
  Backoff backoff{absl::Milliseconds(200), absl::Seconds(5)};
};

RunSupervisor::RunSupervisor(Options options, const RunDirectory* directory, ProgressDisplay* display)
    : options_(std::move(options)), directory_(directory), display_(display) {
  for (uint32_t runners : options_.actor_runners) {
    ActorSlot& slot = actors_.emplace_back();
    slot.name = absl::StrCat("actor-", actors_.size());
    slot.runners = runners;
  }
}

RunSupervisor::~RunSupervisor() = default;

RunSupervisor::Outcome RunSupervisor::Run(const absl::Notification& stop) {
  Outcome outcome;
  const absl::Duration begin = MonotonicNow();
  if (absl::Status status = Start(); !status.ok()) {
    outcome.exit_code = ExitCodeOf(status);
    outcome.failure = std::string(status.message());
  } else {
    while (Watch(&outcome) && !stop.HasBeenNotified()) absl::SleepFor(kWatchPeriod);
  }
  // Learners first: rank 0 writes a checkpoint and reports its last progress to the coordinator.
  const bool elsewhere = options_.learners == 0 && outcome.exit_code == 0 && !FinishedElsewhere(last_status_);
  if (!learners_.AllEnded() || elsewhere) {
    outcome.stopped = stop.HasBeenNotified();
    StopLearners(&outcome);
  }
  outcome.wall_time = MonotonicNow() - begin;
  if (status_client_ != nullptr) PollStatus(true);
  const bool finished = !outcome.stopped && outcome.exit_code == 0;
  StopActors(finished ? kActorGrace : absl::ZeroDuration());
  if (coordinator_ != nullptr) coordinator_->Stop(kCoordinatorStop);
  display_->Finish();
  outcome.last_status = last_status_;
  outcome.actor_restarts = notes_.actor_restarts;
  return outcome;
}

absl::Status RunSupervisor::Start() {
  if (absl::Status status = StartCoordinator(); !status.ok()) return status;
  if (absl::Status status = StartLearners(); !status.ok()) return status;
  for (ActorSlot& slot : actors_) {
    if (absl::Status status = StartActor(&slot); !status.ok()) return status;
  }
  return absl::OkStatus();
}

absl::Status RunSupervisor::StartCoordinator() {
  const auto program = FindProgram(options_.program_folder, "skein-coordinator");
  if (!program.ok()) return program.status();
  auto child = Child::Start({.name = "coordinator",
                             .program = *program,
                             .arguments = {"--config", directory_->config_path(),                      //
                                           "--listen", JoinHostPort(options_.host, options_.port),     //
                                           "--http", JoinHostPort(options_.host, options_.http_port),  //
                                           "--run-dir", directory_->path(),                            //
                                           "--run-id", options_.run_id,                                //
                                           "--new-session",                                            //
                                           "--announce-host", options_.announce_host,                  //
                                           "--log-json", directory_->json_log_path(), "--exit-with-parent"},
                             .log_path = directory_->log_path("coordinator"),
                             .capture_stdout = true});
  if (!child.ok()) return child.status();
  coordinator_ = *std::move(child);
  const auto line = coordinator_->process().ReadLine(kCoordinatorStart);
  if (!line.ok()) {
    const auto code = coordinator_->process().Wait(absl::Seconds(1));
    if (code) return coordinator_->ExitStatus(*code == 0 ? kExitInternal : *code);
    return absl::DeadlineExceededError(absl::StrCat("coordinator does not start: ", line.status().message()));
  }
  const auto addresses = ParseCoordinatorLine(*line);
  if (!addresses.ok()) return addresses.status();
  const auto listening = ParseHostPort(addresses->grpc);
  if (!listening.ok()) return listening.status();
  coordinator_address_ = JoinHostPort(IsWildcard(options_.host) ? "127.0.0.1" : options_.host, listening->port);
  status_client_ = std::make_unique<StatusClient>(coordinator_address_);
  display_->Say(absl::StrCat("status page and metrics discovery: ", addresses->http_url));
  InviteOthers(listening->port);
  return absl::OkStatus();
}

void RunSupervisor::InviteOthers(int coordinator_port) {
  const std::string address = JoinHostPort(options_.announce_host, coordinator_port);
  if (options_.learners == 0) {
    std::error_code error;
    const std::string learner =
        absl::StrCat(options_.program_folder, "/skein-learner --coordinator ", address, " --run-dir ",
                     std::filesystem::absolute(directory_->path(), error).string(),
                     IsLoopback(options_.host) ? "" : absl::StrCat(" --listen 0.0.0.0:", options_.data_port));
    display_->Say(absl::StrCat("start the learners where the run directory can be reached, e.g. two ranks with: ",
                               "torchrun --no-python --nproc_per_node=2 ", learner));
    display_->Say(absl::StrCat("or in a Slurm job: srun -n 2 ", learner));
  }
  if (options_.actor_runners.empty() && options_.takes_workers) {
    const std::string invitation = absl::StrCat("skein worker --address ", address);
    notes_.waiting_hint =
        absl::StrCat("waiting for ", options_.learners == 0 ? "learners and workers: " : "workers: ", invitation);
    display_->Say(absl::StrCat("add workers, here or on other nodes, with: ", invitation));
  }
}

absl::Status RunSupervisor::StartLearners() {
  if (options_.learners == 0) return absl::OkStatus();
  const auto program = FindProgram(options_.program_folder, "skein-learner");
  if (!program.ok()) return program.status();
  return learners_.Start({.program = *program,
                          .ranks = options_.learners,
                          .arguments = {"--coordinator", coordinator_address_,                        //
                                        "--run-dir", directory_->path(),                              //
                                        "--listen", JoinHostPort(options_.host, options_.data_port),  //
                                        "--metrics", JoinHostPort(options_.host, 0),                  //
                                        "--resume", ResumeModeName(options_.resume),                  //
                                        "--timeout", "30s",                                           //
                                        "--log-json", directory_->json_log_path(), "--exit-with-parent"},
                          .torch_threads = options_.torch_threads},
                         directory_);
}

absl::Status RunSupervisor::StartActor(ActorSlot* slot) {
  const auto program = FindProgram(options_.program_folder, "skein-actor");
  if (!program.ok()) return program.status();
  auto child = Child::Start({.name = slot->name,
                             .program = *program,
                             .arguments = {"--coordinator", coordinator_address_,          //
                                           "--runners", absl::StrCat(slot->runners),       //
                                           "--metrics", JoinHostPort(options_.host, 0),    //
                                           "--timeout", "30s",                             //
                                           "--drained-exit-code", absl::StrCat(kDrained),  //
                                           "--log-json", directory_->json_log_path(), "--exit-with-parent"},
                             .log_path = directory_->log_path(slot->name)});
  if (!child.ok()) return child.status();
  slot->child = *std::move(child);
  return absl::OkStatus();
}

bool RunSupervisor::Watch(Outcome* outcome) {
  // First: processes that cannot write there fail in various ways. And learners that are asked to stop write a
  // checkpoint, perhaps into another run's folder by now.
  if (const absl::Status there = directory_->CheckIsThere(); !there.ok()) {
    learners_.Signal(SIGKILL);
    Fail(ExitCodeOf(there), std::string(there.message()), outcome);
    return false;
  }
  const auto mended = learners_.Mend(MonotonicNow());
  if (!mended.ok()) {
    Fail(ExitCodeOf(mended.status()), std::string(mended.status().message()), outcome);
    return false;
  }
  for (const std::string& what : *mended) display_->Say(what);
  if (auto failure = learners_.FindFailure(false)) {
    // It may only have lost contact with the rank that failed, which is then about to end.
    if (failure->code == kExitTryAgain && !learners_.AllEnded()) {
      learners_.WaitForAll(kCauseShows);
      failure = learners_.FindFailure(false);
    }
    Fail(failure->code, failure->description, outcome);
    return false;
  }
  if (options_.learners > 0 && learners_.AllEnded()) return false;
  if (options_.learners == 0 && !WatchLearnersElsewhere()) return false;
  if (const auto code = coordinator_->process().Poll()) {
    Fail(*code, coordinator_->DescribeExit(*code), outcome);
    return false;
  }
  for (ActorSlot& slot : actors_) {
    if (!WatchActor(&slot, outcome)) return false;
  }
  if (MonotonicNow() >= next_poll_) PollStatus(false);
  return true;
}

bool RunSupervisor::WatchActor(ActorSlot* slot, Outcome* outcome) {
  const absl::Duration now = MonotonicNow();
  if (slot->drained) return true;
  if (slot->child == nullptr) {
    // Learners may take longer to end than their actors.
    if (now < slot->restart_at || IsTrained(last_status_)) return true;
    ++notes_.actor_restarts;
    const absl::Status status = StartActor(slot);
    if (status.ok()) return true;
    outcome->exit_code = ExitCodeOf(status);
    outcome->failure = std::string(status.message());
    return false;
  }
  const auto code = slot->child->process().Poll();
  if (!code) return true;
  if (*code == kDrained) {
    display_->Say(absl::StrCat("an actor was drained and stays away (log: ", directory_->log_path(slot->name), ")"));
    slot->drained = true;
    slot->child = nullptr;
    return true;
  }
  if (IsTrained(last_status_)) {
    slot->child = nullptr;
    return true;
  }
  if (IsUsersMistake(*code) || !slot->budget.Take(now)) {
    Fail(*code, slot->child->DescribeExit(*code), outcome);
    return false;
  }
  const absl::Duration delay = *code == 0 ? options_.restart_after_leave : slot->backoff.Next();
  if (*code != 0) display_->Say(absl::StrCat("starting again: ", slot->child->DescribeExit(*code)));
  slot->restart_at = now + delay;
  slot->child = nullptr;
  return true;
}

void RunSupervisor::PollStatus(bool last) {
  auto status = status_client_->Get(kPollDeadline);
  next_poll_ = MonotonicNow() + kStatusPeriod;
  if (!status.ok()) return;  // Its exit is detected elsewhere; it may just be busy.
  last_status_ = *std::move(status);
  display_->Update(*last_status_, notes_, MonotonicNow(), last);
}

bool RunSupervisor::WatchLearnersElsewhere() {
  if (FinishedElsewhere(last_status_)) return false;
  const bool left = last_status_ && HaveLeft(*last_status_);
  if (left && !learners_left_) {
    display_->Say(absl::StrCat("the learners have left (", RunStateName(last_status_->state()),
                               "): start them again to go on, or press Ctrl-C to end"));
  }
  learners_left_ = left;
  return true;
}

void RunSupervisor::StopLearners(Outcome* outcome) {
  if (options_.learners == 0) {
    if (outcome->stopped) display_->Say("stopping; learners that were started elsewhere are to be stopped there");
    return;
  }
  if (outcome->stopped) display_->Say("stopping: the learner writes a checkpoint");
  const absl::Duration limit = learners_.FindFailure(false) ? options_.orphan_stop : options_.learner_stop;
  learners_.Signal(SIGTERM);
  if (!learners_.WaitForAll(std::min(options_.notice_after, limit)) && limit > options_.notice_after) {
    display_->Say(absl::StrCat("still waiting for the learner's checkpoint; press Ctrl-C ",
                               outcome->stopped ? "again" : "twice", " to give up"));
    learners_.WaitForAll(limit - options_.notice_after);
  }
  learners_.KillAll();
  // Stopped by the user before they had begun: code 75 is how they end then.
  const auto failure = learners_.FindFailure(outcome->stopped);
  if (failure && outcome->exit_code == 0) Fail(failure->code, failure->description, outcome);
}

void RunSupervisor::StopActors(absl::Duration grace) {
  const absl::Duration until = MonotonicNow() + grace;
  for (ActorSlot& slot : actors_) {
    if (slot.child != nullptr) slot.child->process().Wait(std::max(until - MonotonicNow(), absl::ZeroDuration()));
  }
  for (ActorSlot& slot : actors_) {
    if (slot.child != nullptr) slot.child->process().Signal(SIGTERM);
  }
  const absl::Duration deadline = MonotonicNow() + kActorStop;
  for (ActorSlot& slot : actors_) {
    if (slot.child != nullptr) slot.child->Stop(std::max(deadline - MonotonicNow(), absl::ZeroDuration()));
  }
}

void RunSupervisor::Fail(int code, const std::string& description, Outcome* outcome) {
  // A child that exited with code 0 too early counts as a failure too.
  outcome->exit_code = code == 0 ? kExitInternal : code;
  outcome->failure = description;
}

}  // namespace skein
