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
#include "base/net/join_flags.h"
#include "base/process/clock.h"
#include "base/process/exit_code.h"
#include "base/process/restart_budget.h"
#include "base/telemetry/format_seconds.h"
#include "cli/vain_failures.h"

namespace skein {
namespace {

// How long a rank that failed may outlive those that lost it.
constexpr absl::Duration kCauseShows = absl::Seconds(1);
constexpr absl::Duration kWatchPeriod = absl::Milliseconds(100);
// After the learner has ended.
constexpr absl::Duration kActorStop = absl::Milliseconds(1500);
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

CoordinatorProcess::Options CoordinatorOptions(const RunSupervisor::Options& options) {
  return {.program_folder = options.program_folder,
          .host = options.host,
          .announce_host = options.announce_host,
          .port = options.port,
          .http_port = options.http_port,
          .run_id = options.run_id,
          .heartbeat = options.heartbeat,
          .lease = options.lease};
}

}  // namespace

struct RunSupervisor::ActorSlot {
  // Remembers the member that the process is, if `status` has it.
  void NameBy(const v1::StatusResponse& status) {
    for (const v1::MemberStatus& one : status.members()) {
      if (one.pid() == child->process().pid() && one.host() == HostName()) member = one.member_id();
    }
  }

  std::string name;    // Of its log.
  std::string member;  // As the coordinator calls the newest process; empty: not known yet.
  uint32_t runners = 1;
  std::unique_ptr<Child> child;  // Null while it waits for restart_at, and once drained.
  bool drained = false;
  absl::Duration restart_at;
  RestartBudget budget{kRestartLimit, kRestartWindow};
  VainFailures vain{kRestartLimit};
  Backoff backoff{absl::Milliseconds(200), absl::Seconds(5)};
};

RunSupervisor::RunSupervisor(Options options, const RunDirectory* directory, ProgressDisplay* display)
    : options_(std::move(options)),
      directory_(directory),
      display_(display),
      coordinator_(CoordinatorOptions(options_), directory, display),
      silent_({.heartbeat = options_.heartbeat, .lease = options_.lease, .host = HostName()}, ProcessorTicks) {
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
  const bool elsewhere = options_.learners == 0 && outcome.exit_code == 0 && !FinishedElsewhere(coordinator_.status());
  if (!learners_.AllEnded() || elsewhere) {
    outcome.stopped = stop.HasBeenNotified();
    StopLearners(&outcome);
  }
  outcome.wall_time = MonotonicNow() - begin;
  outcome.status_is_final = coordinator_.started() && PollStatus(true);
  const bool finished = !outcome.stopped && outcome.exit_code == 0;
  StopActors(finished ? kActorGrace : absl::ZeroDuration());
  coordinator_.Stop();
  display_->Finish();
  outcome.last_status = coordinator_.status();
  outcome.actor_restarts = notes_.actor_restarts;
  return outcome;
}

absl::Status RunSupervisor::Start() {
  if (absl::Status status = coordinator_.Start(); !status.ok()) return status;
  InviteOthers();
  if (absl::Status status = StartLearners(); !status.ok()) return status;
  for (ActorSlot& slot : actors_) {
    if (absl::Status status = StartActor(&slot); !status.ok()) return status;
  }
  TellShares();
  return absl::OkStatus();
}

void RunSupervisor::TellShares() {
  const std::string learner = learners_.held_by();
  const std::string actor = actors_.empty() ? "" : actors_[0].child->held_by();
  if (!learner.empty()) display_->Say(absl::StrCat("share of each learner: ", learner));
  if (!actor.empty()) display_->Say(absl::StrCat("share of each actor: ", actor));
}

std::string RunSupervisor::Address() const { return JoinHostPort(options_.announce_host, coordinator_.port()); }

std::string RunSupervisor::WorkerCommand() const {
  return absl::StrCat(CommandOf(options_.program_folder, "skein"), " worker --address ", Address(),
                      JoinFlags(CredentialFilesInEnvironment(), "actor"));
}

void RunSupervisor::InviteOthers() {
  if (options_.learners == 0) {
    const CredentialFiles files = CredentialFilesInEnvironment();
    std::error_code error;
    const std::string learner =
        absl::StrCat(ShellWord(options_.program_folder + "/skein-learner"), " --coordinator ", Address(), " --run-dir ",
                     ShellWord(std::filesystem::absolute(directory_->path(), error).string()),
                     IsLoopback(options_.host) ? "" : absl::StrCat(" --listen 0.0.0.0:", options_.data_port),
                     JoinFlags(files, "learner"), files.insecure ? " --insecure" : "");
    display_->Say(absl::StrCat("start the learners where the run directory can be reached, e.g. two ranks with: ",
                               "torchrun --no-python --nproc_per_node=2 ", learner));
    display_->Say(absl::StrCat("or in a Slurm job: srun -n 2 ", learner));
  }
  if (options_.actor_runners.empty() && options_.takes_workers) {
    const std::string invitation = WorkerCommand();
    notes_.waiting_hint =
        absl::StrCat("waiting for ", options_.learners == 0 ? "learners and workers: " : "workers: ", invitation);
    display_->Say(absl::StrCat("add workers, here or on other nodes, with: ", invitation));
  }
}

absl::Status RunSupervisor::StartLearners() {
  if (options_.learners == 0) return absl::OkStatus();
  const auto program = FindProgram(options_.program_folder, "skein-learner");
  if (!program.ok()) return program.status();
  std::vector<std::string> arguments = {"--coordinator",     coordinator_.address(),                           //
                                        "--run-dir",         directory_->path(),                               //
                                        "--listen",          JoinHostPort(options_.host, options_.data_port),  //
                                        "--metrics",         JoinHostPort(options_.host, 0),                   //
                                        "--resume",          ResumeModeName(options_.resume),                  //
                                        "--timeout",         "30s",                                            //
                                        "--log-json",        directory_->json_log_path(),
                                        "--exit-with-parent"};
  if (options_.stop_at_step > 0) {
    arguments.insert(arguments.end(), {"--stop-at-step", absl::StrCat(options_.stop_at_step)});
  }
  return learners_.Start({.program = *program,
                          .ranks = options_.learners,
                          .arguments = std::move(arguments),
                          .torch_threads = options_.torch_threads,
                          .share = options_.shares.learner,
                          .enforcer = &enforcer_,
                          .on_lost = [this](pid_t pid) { coordinator_.TellDead(pid); }},
                         directory_);
}

absl::Status RunSupervisor::StartActor(ActorSlot* slot) {
  slot->member.clear();
  const auto program = FindProgram(options_.program_folder, "skein-actor");
  if (!program.ok()) return program.status();
  auto child = Child::Start({.name = slot->name,
                             .program = *program,
                             .arguments = {"--coordinator", coordinator_.address(),        //
                                           "--runners", absl::StrCat(slot->runners),       //
                                           "--metrics", JoinHostPort(options_.host, 0),    //
                                           "--timeout", "30s",                             //
                                           "--drained-exit-code", absl::StrCat(kDrained),  //
                                           "--log-json", directory_->json_log_path(), "--exit-with-parent"},
                             .log_path = directory_->log_path(slot->name),
                             .share = options_.shares.actor,
                             .enforcer = &enforcer_});
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
  if (const auto failure = coordinator_.Watch()) {
    Fail(failure->code, failure->description, outcome);
    return false;
  }
  for (ActorSlot& slot : actors_) {
    if (!WatchActor(&slot, outcome)) return false;
  }
  if (PollStatus(false)) KillHungLearners();
  return true;
}

void RunSupervisor::KillHungLearners() {
  for (const SilentLearners::Hanging& one : silent_.Look(*coordinator_.status(), learners_.Running(), MonotonicNow())) {
    display_->Say(absl::StrCat("the learner hangs: process ", one.pid, " has not been heard of for ",
                               FormatSeconds(absl::ToDoubleSeconds(one.silence)), "; ending it"));
    learners_.KillHung(one.pid);
  }
}

bool RunSupervisor::WatchActor(ActorSlot* slot, Outcome* outcome) {
  const absl::Duration now = MonotonicNow();
  if (slot->drained) return true;
  if (slot->child == nullptr) {
    // Learners may take longer to end than their actors.
    if (now < slot->restart_at || IsTrained(coordinator_.status())) return true;
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
    display_->Say(absl::StrCat(slot->member.empty() ? "an actor" : slot->member,
                               " was drained and stays away (log: ", directory_->log_path(slot->name), ")"));
    slot->drained = true;
    slot->child = nullptr;
    if (std::all_of(actors_.begin(), actors_.end(), [](const ActorSlot& one) { return one.drained; })) {
      notes_.waiting_hint = absl::StrCat("no actor is left on this machine; add one with: ", WorkerCommand());
      display_->Say(notes_.waiting_hint);
    }
    return true;
  }
  if (IsTrained(coordinator_.status())) {
    slot->child = nullptr;
    return true;
  }
  const auto& status = coordinator_.status();
  const bool vain = !slot->vain.Take(*code, status ? status->progress().env_steps() : 0);
  if (vain || IsUsersMistake(*code) || !slot->budget.Take(now)) {
    Fail(*code, slot->child->DescribeExit(*code), outcome);
    return false;
  }
  const absl::Duration delay = *code == 0 ? options_.restart_after_leave : slot->backoff.Next();
  if (*code != 0) display_->Say(absl::StrCat("starting again: ", slot->child->DescribeExit(*code)));
  slot->restart_at = now + delay;
  slot->child = nullptr;
  return true;
}

bool RunSupervisor::PollStatus(bool last) {
  if (!coordinator_.PollStatus(last)) return false;
  display_->Update(*coordinator_.status(), notes_, MonotonicNow(), last);
  for (ActorSlot& slot : actors_) {
    if (slot.child != nullptr) slot.NameBy(*coordinator_.status());
  }
  return true;
}

bool RunSupervisor::WatchLearnersElsewhere() {
  if (FinishedElsewhere(coordinator_.status())) return false;
  const bool left = coordinator_.status() && HaveLeft(*coordinator_.status());
  if (left && !learners_left_) {
    display_->Say(absl::StrCat("the learners have left (", RunStateName(coordinator_.status()->state()),
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
