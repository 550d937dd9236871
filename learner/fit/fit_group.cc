// SPDX-License-Identifier: Apache-2.0
#include "learner/fit/fit_group.h"

#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "absl/time/clock.h"
#include "base/config/message_settings.h"
#include "base/config/resume_mode.h"
#include "base/process/clock.h"
#include "base/process/exit_code.h"
#include "base/process/file.h"
#include "base/process/restart_budget.h"
#include "base/process/subprocess.h"
#include "learner/fit/fit_folder.h"
#include "learner/ranks/listener.h"
#include "learner/sequence/fit_settings.h"
#include "spdlog/spdlog.h"

namespace skein {
namespace {

constexpr absl::Duration kBetweenLooks = absl::Milliseconds(50);
constexpr absl::Duration kToFail = absl::Seconds(5);   // For the cause, on a busy machine.
constexpr absl::Duration kToStop = absl::Seconds(60);  // A step and a checkpoint.
constexpr absl::Duration kToSay = absl::Seconds(10);

// That ExitCodeOf() turns into `code` again.
absl::StatusCode CodeOf(int code) {
  switch (code) {
    case kExitUsage:
      return absl::StatusCode::kInvalidArgument;
    case kExitData:
      return absl::StatusCode::kDataLoss;
    case kExitUnavailable:
      return absl::StatusCode::kUnavailable;
    case kExitIo:
      return absl::StatusCode::kResourceExhausted;
    default:
      return absl::StatusCode::kInternal;
  }
}

class FitGroup {
 public:
  FitGroup(uint32_t ranks, const FitOptions& options) : ranks_(ranks), options_(options) {}
  ~FitGroup() { Stop(SIGKILL); }

  absl::Status Start(ResumeMode resume);
  // A rank and its code.
  struct Ended {
    uint32_t rank = 0;
    int code = 0;
    bool is_lost() const { return code == kExitTryAgain || code > 128; }
  };
  // The first rank that ended with a code that is not 0, or any with 0 once all have ended; nullopt while they run.
  std::optional<Ended> Look();
  // As Look(), which must not be nullopt, once there is a code other than that of ranks that only lost another one,
  // once all have ended, or after kToFail.
  Ended AwaitCause();
  // What the rank wrote last.
  std::string LastLine(uint32_t rank) const;
  void Signal(int signal_number) {
    for (const auto& process : processes_) process->Signal(signal_number);
  }
  // The code of rank 0, which says itself why it ends; nullopt: it runs on.
  std::optional<int> WaitForFirst() { return processes_[0]->Wait(kToSay); }
  // Signals all and waits for them.
  void Stop(int signal_number);

 private:
  // What the ranks are to train. Rank 0 writes config.yaml, once it knows that the folder's training may go on with it.
  std::string ConfigPath() const { return absl::StrCat(options_.run_directory, "/config.ranks.yaml"); }
  std::string LogOf(uint32_t rank) const { return absl::StrCat(options_.run_directory, "/rank-", rank, ".log"); }

  const uint32_t ranks_;
  const FitOptions& options_;
  std::vector<std::unique_ptr<Subprocess>> processes_;
};

absl::Status FitGroup::Start(ResumeMode resume) {
  processes_.clear();
  const auto listener = ListenOn("127.0.0.1", 0, 1);
  if (!listener.ok()) return listener.status();
  close(listener->descriptor);  // Rank 0 takes the port.
  if (absl::Status s = WriteFileAtomically(ConfigPath(), SettingsYaml(options_.config)); !s.ok()) return s;
  const std::string config_path = ConfigPath();
  std::error_code error;
  const std::string program = std::filesystem::read_symlink("/proc/self/exe", error).string();
  for (uint32_t rank = 0; rank < ranks_; ++rank) {
    Subprocess::Options spawn;
    spawn.argv = {program,       "fit",
                  "--config",    config_path,
                  "--run-dir",   options_.run_directory,
                  "--resume",    ResumeModeName(resume),
                  "--metrics",   options_.metrics,
                  "--timeout",   absl::FormatDuration(options_.timeout),
                  "--port",      absl::StrCat(options_.port),
                  "--http-port", absl::StrCat(options_.http_port),
                  "--claimed",   "--exit-with-parent"};
    if (!options_.log_json.empty()) spawn.argv.insert(spawn.argv.end(), {"--log-json", options_.log_json});
    if (!options_.coordinator.empty()) {
      spawn.argv.insert(spawn.argv.end(), {"--coordinator", options_.coordinator});
    }
    spawn.extra_env = {absl::StrCat("RANK=", rank), absl::StrCat("WORLD_SIZE=", ranks_),
                       absl::StrCat("LOCAL_RANK=", rank), "MASTER_ADDR=127.0.0.1",
                       absl::StrCat("MASTER_PORT=", listener->port)};
    spawn.unset_env = {"TORCHELASTIC_RUN_ID", "SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "SLURM_LOCALID"};
    if (rank > 0) spawn.output_path = LogOf(rank);
    auto process = Subprocess::Spawn(spawn);
    if (!process.ok()) return process.status();
    processes_.push_back(*std::move(process));
  }
  return absl::OkStatus();
}

std::optional<FitGroup::Ended> FitGroup::Look() {
  bool all_ended = true;
  // Ranks that only lost another one end with code 75: any other code is the cause.
  std::optional<Ended> failure;
  for (uint32_t rank = 0; rank < processes_.size(); ++rank) {
    const std::optional<int> code = processes_[rank]->Poll();
    if (!code) all_ended = false;
    if (code && *code != 0 && (!failure || failure->code == kExitTryAgain)) failure = Ended{rank, *code};
  }
  if (failure) return failure;
  return all_ended ? std::optional<Ended>(Ended()) : std::nullopt;
}

FitGroup::Ended FitGroup::AwaitCause() {
  const absl::Duration until = MonotonicNow() + kToFail;
  for (;;) {
    const Ended ended = *Look();
    bool all_ended = true;
    for (const auto& process : processes_) all_ended &= process->Poll().has_value();
    if (ended.code != kExitTryAgain || all_ended || MonotonicNow() > until) return ended;
    absl::SleepFor(kBetweenLooks);
  }
}

std::string FitGroup::LastLine(uint32_t rank) const {
  const auto log = ReadFile(LogOf(rank));
  if (!log.ok()) return std::string(log.status().message());
  const std::vector<std::string> lines = absl::StrSplit(*log, '\n', absl::SkipWhitespace());
  return lines.empty() ? "it said nothing" : std::string(absl::StripPrefix(lines.back(), "skein fit: "));
}

void FitGroup::Stop(int signal_number) {
  Signal(signal_number);
  const absl::Duration until = MonotonicNow() + kToStop;
  for (const auto& process : processes_) {
    if (process->Wait(std::max(absl::ZeroDuration(), until - MonotonicNow()))) continue;
    process->Signal(SIGKILL);
    process->Wait(kToStop);
  }
}

}  // namespace

absl::Status RunFitGroup(uint32_t ranks, const FitOptions& options, ShutdownSignal* shutdown) {
  if (PartsFor(options.config.train(), ranks) % ranks != 0) {
    return absl::InvalidArgumentError(absl::StrCat("train.parts (", options.config.train().parts(),
                                                   ") must be a multiple of --learners (", ranks,
                                                   "), which share the parts of a batch"));
  }
  const auto claimed = FitFolder::Claim(options.run_directory, options.resume);
  if (!claimed.ok()) return claimed.status();
  if (!claimed->moved_to().empty()) {
    std::printf("moved what was in %s to %s\n", options.run_directory.c_str(), claimed->moved_to().c_str());
    std::fflush(stdout);
  }
  FitGroup group(ranks, options);
  RestartBudget budget{3, absl::Minutes(1)};
  if (absl::Status s = group.Start(options.resume); !s.ok()) return s;
  bool stopping = false;
  for (;;) {
    absl::SleepFor(kBetweenLooks);
    if (shutdown->signalled() && !stopping) {
      stopping = true;
      group.Signal(SIGTERM);
    }
    std::optional<FitGroup::Ended> ended = group.Look();
    if (!ended) continue;
    if (ended->code == 0) return absl::OkStatus();
    if (ended->is_lost()) {
      ended = group.AwaitCause();
      stopping |= shutdown->signalled();  // A terminal's signal reaches the ranks, too, and perhaps first.
    }
    // A rank that has nothing left to do may be ended by the signal itself while rank 0 still writes or says why it
    // stops.
    const bool may_have_said_why = !ended->is_lost() || stopping;
    const std::optional<int> first_code = may_have_said_why ? group.WaitForFirst() : std::nullopt;
    const bool has_said_why = ended->is_lost() && first_code == kExitTryAgain;
    if (ended->is_lost() && first_code == 0) return absl::OkStatus();
    group.Stop(SIGKILL);
    if (has_said_why) EndProcess(kExitTryAgain);
    if (stopping && ended->code == 128 + SIGTERM) {  // Its program was still being loaded.
      return absl::CancelledError("stopped on request before the training began");
    }
    if (!ended->is_lost()) {
      // Rank 0 has said why, unless the cause is this rank's own.
      if (ended->rank == 0 || first_code == ended->code) EndProcess(ended->code);
      return absl::Status(CodeOf(ended->code), absl::StrCat("rank ", ended->rank, ": ", group.LastLine(ended->rank)));
    }
    if (stopping) return absl::AbortedError("a rank was lost while the training stopped; its checkpoints are intact");
    if (!budget.Take(MonotonicNow())) {
      return absl::AbortedError(
          absl::StrCat("rank ", ended->rank, " ended with code ", ended->code, ", the fourth time in a minute"));
    }
    spdlog::warn("a rank was lost (rank {}, code {}): all start again from the newest checkpoint", ended->rank,
                 ended->code);
    if (absl::Status s = group.Start(ResumeMode::kAuto); !s.ok()) return s;
  }
}

}  // namespace skein
