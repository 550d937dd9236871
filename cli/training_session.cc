// SPDX-License-Identifier: Apache-2.0
#include "cli/training_session.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <optional>
#include <system_error>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "base/config/config.h"
#include "base/config/resource_rules.h"
#include "base/process/cores.h"
#include "base/process/exit_code.h"
#include "base/process/message_text.h"
#include "base/process/share_enforcer.h"
#include "base/process/shutdown.h"
#include "base/process/terminal.h"
#include "base/telemetry/format_count.h"
#include "base/telemetry/format_seconds.h"
#include "base/telemetry/printable.h"
#include "cli/checkpoint_info.h"
#include "cli/final_evaluation.h"
#include "cli/progress_display.h"
#include "cli/run_directory.h"
#include "cli/run_supervisor.h"
#include "eval/evaluation_result.h"
#include "launch/node_bookings.h"
#include "launch/visible_gpus.h"

namespace skein {
namespace {

// Between two looks whether there are resources.
constexpr absl::Duration kWait = absl::Milliseconds(200);

std::string DescribeCheckpoint(const CheckpointInfo& checkpoint) {
  return absl::StrCat("checkpoint: ", Escaped(checkpoint.path), " (digest ",
                      checkpoint.digest.empty() ? "?" : checkpoint.digest, ")");
}

std::string DescribeMove(const RunDirectory& directory) {
  const RunDirectory::OldCopies copies = directory.FindOldCopies();
  const uint64_t mebibytes = (copies.bytes + (1 << 20) - 1) >> 20;
  return absl::StrCat("moved the old run to ", Escaped(directory.moved_to()), "; ", copies.count, " old ",
                      copies.count == 1 ? "copy takes " : "copies take ", mebibytes,
                      " MiB and can be deleted: ", Escaped(directory.path()), ".old-*");
}

// Before anything starts: the learner would find it out only when all is running.
absl::Status CheckDeviceIsHere(const LaunchPlan& plan) {
  const std::string& device = plan.config.learner().device();
  if (plan.learners == 0 || !absl::StartsWith(device, "cuda") || CountVisibleGpus() > 0) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("learner.device (--device): got '", device,
                   "', but there is no GPU for CUDA here, or LibTorch was built without CUDA; try auto or cpu"));
}

// Before anything starts, as above. A run that has checkpoints goes on from its own.
absl::Status CheckInitIsHere(const std::string& runs_dir, const LaunchPlan& plan) {
  const std::string& from = plan.config.learner().init_from();
  const std::string run = absl::StrCat(runs_dir, "/", plan.config.name());
  const bool never = plan.resume == ResumeMode::kNever;
  if (plan.learners == 0 || from.empty() || (!never && FindNewestCheckpoint(run))) return absl::OkStatus();
  std::error_code none;  // What cannot be looked at is reported below.
  const auto path = [&none](const std::string& name) { return std::filesystem::weakly_canonical(name, none); };
  if (never && std::filesystem::exists(run, none) &&
      absl::StartsWith(path(from).string() + "/", path(run).string() + "/")) {
    return absl::InvalidArgumentError(
        absl::StrCat("learner.init_from: ", from, " is in ", run, ", which --resume never moves; give another --name"));
  }
  const absl::Status found = CheckCheckpoint(from);
  return found.ok() ? found
                    : absl::Status(found.code(), absl::StrCat("learner.init_from: ", std::string(found.message())));
}

// The run's part of this machine; null if it has none. InvalidArgument: there is too little, or too little is left.
// With session.waits_for_resources the latter is awaited; Cancelled: until `stop`.
absl::StatusOr<std::unique_ptr<NodeBooking>> Book(const LaunchOptions& options, const LaunchPlan& plan,
                                                  const absl::Notification& stop) {
  if (std::getenv(kShareHeldVariable) != nullptr) return nullptr;  // The holder of this process has booked its share.
  const auto request = RequestOf(plan.config, plan.learners, static_cast<uint32_t>(plan.actor_runners.size()));
  for (bool said = false;; said = true) {
    auto booking = NodeBooking::Take(BookingFolder(), request, WhatIsHere(CountVisibleGpus()));
    if (!absl::IsUnavailable(booking.status())) return booking;
    if (!options.session.waits_for_resources) return absl::InvalidArgumentError(booking.status().message());
    if (!said) std::cout << "waiting: " << Escaped(std::string(booking.status().message())) << std::endl;
    if (stop.WaitForNotificationWithTimeout(kWait))
      return absl::CancelledError("stopped while it waited for resources");
  }
}

RunSupervisor::Options SupervisorOptions(const LaunchOptions& options, const LaunchPlan& plan,
                                         const std::string& program_folder) {
  RunSupervisor::Options supervisor;
  supervisor.program_folder = program_folder;
  supervisor.host = options.host.bind;
  supervisor.announce_host = options.host.announce.empty() ? AnnounceHost(options.host.bind) : options.host.announce;
  supervisor.port = options.ports.coordinator;
  supervisor.http_port = options.ports.http;
  supervisor.data_port = options.ports.data;
  supervisor.resume = plan.resume;
  supervisor.run_id = RunId(plan.config);
  supervisor.heartbeat = absl::Seconds(plan.config.coordinator().heartbeat_seconds());
  supervisor.lease = absl::Seconds(plan.config.coordinator().lease_seconds());
  supervisor.learners = plan.learners;
  supervisor.torch_threads = static_cast<int>(plan.config.learner().torch_threads());
  supervisor.actor_runners = plan.actor_runners;
  supervisor.takes_workers = !plan.on_device;
  supervisor.shares.actor = ActorShare(plan.config);
  supervisor.shares.learner = LearnerShare(plan.config);
  supervisor.stop_at_step = options.session.ends_at_step;
  return supervisor;
}

// The run's account: as of the checkpoint; if learners elsewhere keep that elsewhere, as the coordinator last had it.
v1::StepAccount LastAccount(const RunSupervisor::Outcome& outcome, const std::optional<CheckpointInfo>& checkpoint) {
  if (checkpoint) return checkpoint->account;
  return outcome.status_is_final ? outcome.last_status->progress().account() : v1::StepAccount();
}

// Whether `failure`, with which the session ends, has the first error in it.
bool SaysFirstError(const std::string& failure, const v1::StatusResponse& status) {
  const std::string& error = status.progress().last_error();  // Without the learner's name.
  return !error.empty() && absl::EndsWith(FirstError(status), error) && absl::StrContains(failure, error);
}

// The summary of one session. `checkpoint`: the newest one on the disk.
void Report(const RunSupervisor::Outcome& outcome, uint64_t steps_before,
            const std::optional<CheckpointInfo>& checkpoint) {
  const double seconds = absl::ToDoubleSeconds(outcome.wall_time);
  if (checkpoint) {
    const uint64_t trained = checkpoint->env_steps - std::min(steps_before, checkpoint->env_steps);
    const uint64_t rate = seconds > 0 ? static_cast<uint64_t>(static_cast<double>(trained) / seconds) : 0;
    if (trained > 0) {
      std::cout << "trained: " << FormatCount(trained) << " env steps in " << FormatSeconds(seconds) << " ("
                << FormatCount(rate) << " env-steps/s with start and end)\n";
    }
  }
  if (const v1::StepAccount account = LastAccount(outcome, checkpoint); account.collected() > 0) {
    std::cout << "step account: " << FormatStepAccount(account) << "\n";
  }
  if (outcome.actor_restarts > 0) std::cout << "actors restarted: " << outcome.actor_restarts << "\n";
  if (checkpoint) std::cout << DescribeCheckpoint(*checkpoint) << "\n";
  std::cout << std::flush;
  if (outcome.last_status && !SaysFirstError(outcome.failure, *outcome.last_status)) {
    const std::string error = FirstError(*outcome.last_status);
    if (!error.empty()) std::cerr << "first error: " << error << std::endl;
  }
}

int EvaluateAndReport(const LaunchOptions& options, const LaunchPlan& plan, const std::string& command,
                      const std::string& program_folder, const RunDirectory& directory,
                      const absl::Notification& stop) {
  if (options.session.no_eval || plan.config.eval().episodes() == 0) return kExitOk;
  std::cout << "evaluating " << plan.config.eval().episodes() << " episodes" << std::endl;
  const auto result = EvaluateRun(program_folder, directory, plan.config, stop);
  if (absl::IsCancelled(result.status())) {
    std::cout << "evaluation stopped; the same command evaluates again" << std::endl;
    return kExitOk;
  }
  if (!result.ok()) return ReportAndExitCode(command.c_str(), result.status());
  for (const std::string& warning : result->warnings) std::cerr << command << ": warning: " << warning << std::endl;
  if (const std::string failed = FailedEpisodesText(*result); !failed.empty()) {
    std::cerr << command << ": warning: " << failed << " (" << Escaped(directory.log_path("eval")) << ")" << std::endl;
  }
  if (!result->warnings.empty()) std::cout << "evaluated instead: " << Escaped(result->checkpoint) << "\n";
  std::cout << "evaluation: " << FormatEvaluation(*result) << " (" << Escaped(directory.eval_path()) << ")"
            << std::endl;
  return kExitOk;
}

}  // namespace

int RunTraining(const LaunchOptions& options, const std::string& command, const std::string& program_folder,
                SessionResult* result) {
  absl::Notification stop;
  ShutdownSignal shutdown;
  shutdown.OnSignal([&stop] { stop.Notify(); });
  if (options.session.ends_with_parent) ExitWithParent();

  const auto plan = PlanLaunch(options, Cores(), SizesInRunFolder(options));
  if (!plan.ok()) return ReportAndExitCode(command.c_str(), plan.status());
  for (const absl::Status& status : {CheckDeviceIsHere(*plan), CheckInitIsHere(options.runs_dir, *plan)}) {
    if (!status.ok()) return ReportAndExitCode(command.c_str(), status);
  }
  const auto booking = Book(options, *plan, stop);
  if (!booking.ok()) {
    const bool too_much = absl::IsInvalidArgument(booking.status());
    return ReportAndExitCode(command.c_str(), too_much
                                                  ? Located(options.config_path, options.overrides, booking.status())
                                                  : booking.status());
  }
  const auto directory = RunDirectory::Open(options.runs_dir, plan->config, plan->resume);
  if (!directory.ok()) return ReportAndExitCode(command.c_str(), directory.status());
  const v1::RunConfig& config = plan->config;
  if (result != nullptr) result->run_directory = directory->path();

  for (const std::string& note : plan->notes) std::cout << note << "\n";
  if (!directory->moved_to().empty()) std::cout << DescribeMove(*directory) << "\n";
  std::cout << "run directory: " << Escaped(directory->path()) << std::endl;
  const auto before = directory->NewestCheckpoint();
  uint64_t steps_before = before ? before->env_steps : 0;
  if (before && steps_before >= config.total_steps()) {
    // Starts the learner even so: only it can verify the checkpoint, and repair the run if it is damaged.
    std::cout << "target already reached: " << FormatCount(steps_before) << " of " << FormatCount(config.total_steps())
              << " env steps; raise it with --steps, or start over with --resume never; verifying the checkpoint"
              << std::endl;
  } else if (before) {
    std::cout << "resuming at " << FormatCount(steps_before) << " of " << FormatCount(config.total_steps())
              << " env steps" << std::endl;
  }
  if (const std::string& from = options.init.from; before && !from.empty()) {
    std::cout << "its own checkpoint counts; nothing is taken from " << Escaped(from)
              << " (--init-from); give another --name, or --resume never" << std::endl;
  }

  ProgressDisplay display(stdout, TerminalWidth(stdout), absl::Seconds(config.logging().interval_seconds()));
  RunSupervisor supervisor(SupervisorOptions(options, *plan, program_folder), &*directory, &display);
  const RunSupervisor::Outcome outcome = supervisor.Run(stop);
  const v1::RunProgress progress = outcome.last_status.value_or(v1::StatusResponse()).progress();
  const bool learner_began = progress.policy_version() > 0;
  if (learner_began && before && progress.start_env_steps() != steps_before) {
    const std::string log =
        plan->learners > 0 ? directory->log_path(LearnerName(0, plan->learners)) : "the log of learner rank 0";
    std::cerr << command << ": warning: " << Escaped(before->path) << " is damaged (" << Escaped(log)
              << " says how); went on from " << FormatCount(progress.start_env_steps()) << " env steps" << std::endl;
  }
  if (learner_began) steps_before = progress.start_env_steps();
  // What is on the disk counts: a coordinator that was not reachable has an old status.
  const auto after = directory->NewestIntactCheckpoint();
  const bool reached = after && after->env_steps >= config.total_steps();
  if (result != nullptr) result->checkpoint = after;
  Report(outcome, steps_before, after);
  if (outcome.exit_code != 0) {
    std::cerr << command << ": " << EscapedLines(outcome.failure) << std::endl;
    return outcome.exit_code;
  }
  if (!reached && plan->learners == 0 && progress.state() == v1::RUN_STATE_FINISHED) {
    std::cout << "the learners have finished the run; their checkpoint is not to be seen from here: evaluate it there, "
              << "with skein eval --checkpoint " << Printable(progress.checkpoint()) << std::endl;
    return kExitOk;
  }
  if (!reached && options.session.ends_at_step > 0 && after && after->env_steps >= options.session.ends_at_step) {
    std::cout << "stopped at " << FormatCount(after->env_steps) << " of " << FormatCount(config.total_steps())
              << " env steps, as --stop-at-step says" << std::endl;
    return kExitOk;
  }
  if (!reached) {
    std::cout << "stopped before the target of " << FormatCount(config.total_steps()) << " env steps; the same command "
              << (after ? "goes on from the checkpoint" : "begins again")
              << (after && plan->resume == ResumeMode::kNever ? " if --resume never is left out" : "") << std::endl;
    return kExitOk;
  }
  if (stop.HasBeenNotified()) return kExitOk;
  return EvaluateAndReport(options, *plan, command, program_folder, *directory, stop);
}

}  // namespace skein
