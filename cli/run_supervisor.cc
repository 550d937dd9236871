// SPDX-License-Identifier: Apache-2.0
#include "cli/run_supervisor.h"

#include <algorithm>
#include <csignal>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "base/backoff.h"
#include "base/clock.h"
#include "base/exit_code.h"
#include "base/grpc_transport.h"
#include "cli/restart_budget.h"

namespace skein {
namespace {

constexpr absl::Duration kTick = absl::Milliseconds(100);
constexpr absl::Duration kPollPeriod = absl::Seconds(1);
constexpr absl::Duration kPollDeadline = absl::Milliseconds(500);
constexpr absl::Duration kCoordinatorStart = absl::Seconds(15);
// After the learner has ended.
constexpr absl::Duration kActorStop = absl::Milliseconds(1500);
constexpr absl::Duration kCoordinatorStop = absl::Seconds(1);
// After the learner has ended by itself: time for actors to hear of it.
constexpr absl::Duration kActorGrace = absl::Seconds(3);
// An actor that left in order may have heard of the end before we have.
constexpr absl::Duration kRestartAfterLeave = absl::Seconds(5);
constexpr absl::Duration kRestartWindow = absl::Minutes(1);
constexpr size_t kRestartLimit = 3;

// Starting the actor again would end the same way.
bool IsUsersMistake(int code) { return code == kExitUsage || code == kExitData; }

}  // namespace

struct RunSupervisor::ActorSlot {
  std::string name;
  uint32_t runners = 1;
  std::unique_ptr<Child> child;  // Null while it waits for restart_at.
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
    while (Watch(&outcome) && !stop.WaitForNotificationWithTimeout(kTick)) continue;
  }
  // The learner first: it writes a checkpoint and reports its last figures to the coordinator.
  if (learner_ != nullptr && !learner_->process().Poll()) {
    outcome.stopped = stop.HasBeenNotified();
    StopLearner(&outcome);
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
  if (absl::Status status = StartLearner(); !status.ok()) return status;
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
  if (options_.actor_runners.empty()) {
    const std::string invitation =
        absl::StrCat("skein worker --address ", JoinHostPort(options_.announce_host, listening->port));
    notes_.waiting_hint = absl::StrCat("waiting for workers: ", invitation);
    display_->Say(absl::StrCat("add workers, here or on other nodes, with: ", invitation));
  }
  return absl::OkStatus();
}

absl::Status RunSupervisor::StartLearner() {
  const auto program = FindProgram(options_.program_folder, "skein-learner");
  if (!program.ok()) return program.status();
  auto child = Child::Start({.name = "learner",
                             .program = *program,
                             .arguments = {"--coordinator", coordinator_address_,                        //
                                           "--run-dir", directory_->path(),                              //
                                           "--listen", JoinHostPort(options_.host, options_.data_port),  //
                                           "--metrics", JoinHostPort(options_.host, 0),                  //
                                           "--resume", ResumeModeName(options_.resume),                  //
                                           "--timeout", "30s",                                           //
                                           "--log-json", directory_->json_log_path(), "--exit-with-parent"},
                             .log_path = directory_->log_path("learner"),
                             .torch_threads = options_.torch_threads});
  if (!child.ok()) return child.status();
  learner_ = *std::move(child);
  return directory_->NoteChild(learner_->process().pid());
}

absl::Status RunSupervisor::StartActor(ActorSlot* slot) {
  const auto program = FindProgram(options_.program_folder, "skein-actor");
  if (!program.ok()) return program.status();
  auto child = Child::Start({.name = slot->name,
                             .program = *program,
                             .arguments = {"--coordinator", coordinator_address_,        //
                                           "--runners", absl::StrCat(slot->runners),     //
                                           "--metrics", JoinHostPort(options_.host, 0),  //
                                           "--timeout", "30s",                           //
                                           "--log-json", directory_->json_log_path(), "--exit-with-parent"},
                             .log_path = directory_->log_path(slot->name)});
  if (!child.ok()) return child.status();
  slot->child = *std::move(child);
  return absl::OkStatus();
}

bool RunSupervisor::Watch(Outcome* outcome) {
  if (const auto code = learner_->process().Poll()) {
    if (*code != 0) Fail(*learner_, *code, outcome);
    return false;
  }
  if (const auto code = coordinator_->process().Poll()) {
    Fail(*coordinator_, *code, outcome);
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
  if (slot->child == nullptr) {
    if (now < slot->restart_at) return true;
    ++notes_.actor_restarts;
    const absl::Status status = StartActor(slot);
    if (status.ok()) return true;
    outcome->exit_code = ExitCodeOf(status);
    outcome->failure = std::string(status.message());
    return false;
  }
  const auto code = slot->child->process().Poll();
  if (!code) return true;
  if (IsUsersMistake(*code) || !slot->budget.Take(now)) {
    Fail(*slot->child, *code, outcome);
    return false;
  }
  const absl::Duration delay = *code == 0 ? kRestartAfterLeave : slot->backoff.Next();
  if (*code != 0) display_->Say(absl::StrCat("starting again: ", slot->child->DescribeExit(*code)));
  slot->restart_at = now + delay;
  slot->child = nullptr;
  return true;
}

void RunSupervisor::PollStatus(bool last) {
  auto status = status_client_->Get(kPollDeadline);
  next_poll_ = MonotonicNow() + kPollPeriod;
  if (!status.ok()) return;  // Its death is seen elsewhere; for a moment it may just be busy.
  last_status_ = *std::move(status);
  display_->Update(*last_status_, notes_, MonotonicNow(), last);
}

void RunSupervisor::StopLearner(Outcome* outcome) {
  if (outcome->stopped) display_->Say("stopping: the learner writes a checkpoint");
  Subprocess& process = learner_->process();
  process.Signal(SIGTERM);
  std::optional<int> code = process.Wait(options_.notice_after);
  if (!code) {
    display_->Say(absl::StrCat("still waiting for the learner's checkpoint; press Ctrl-C ",
                               outcome->stopped ? "again" : "twice", " to give up"));
    code = process.Wait(options_.learner_stop - options_.notice_after);
  }
  if (!code) code = learner_->Stop(absl::ZeroDuration());
  // Stopped by the user before it had begun: that is how it ends then.
  if (outcome->stopped && (*code == kExitTryAgain || *code == 128 + SIGTERM)) code = 0;
  if (*code != 0 && outcome->exit_code == 0) Fail(*learner_, *code, outcome);
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

void RunSupervisor::Fail(const Child& child, int code, Outcome* outcome) {
  // A child that ended as if all were well, before its time, has failed us all the same.
  outcome->exit_code = code == 0 ? kExitInternal : code;
  outcome->failure = child.DescribeExit(code);
}

absl::StatusOr<CoordinatorAddresses> ParseCoordinatorLine(const std::string& line) {
  CoordinatorAddresses addresses;
  for (absl::string_view word : absl::StrSplit(line, ' ')) {
    if (absl::ConsumePrefix(&word, "grpc=")) addresses.grpc = std::string(word);
    if (absl::ConsumePrefix(&word, "http=")) addresses.http_url = std::string(word);
  }
  if (addresses.grpc.empty() || addresses.http_url.empty()) {
    return absl::InternalError(absl::StrCat("coordinator said '", line, "', want its addresses"));
  }
  return addresses;
}

}  // namespace skein
