// SPDX-License-Identifier: Apache-2.0
#include "sweep/run_launcher.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <limits>
#include <system_error>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/time/clock.h"
#include "base/config/config.h"
#include "base/net/join_flags.h"
#include "base/process/clock.h"
#include "base/process/exit_code.h"
#include "base/process/file.h"
#include "base/process/message_text.h"
#include "nlohmann/json.hpp"

namespace skein {
namespace {

namespace fs = std::filesystem;

constexpr char kStep[] = "step_";
constexpr absl::string_view kEval = "eval.";
// Bytes. A disk with less is full: a checkpoint does not fit any more, although a line of the journal may.
constexpr uint64_t kRoom = uint64_t{16} << 20;

// Of the newest complete checkpoint of a run; empty if there is none.
fs::path NewestCheckpoint(const std::string& run_folder) {
  fs::path newest;
  std::error_code error;
  for (fs::directory_iterator it(run_folder + "/checkpoints", error), end; !error && it != end; it.increment(error)) {
    std::error_code ignored;
    const bool complete =
        absl::StartsWith(it->path().filename().string(), kStep) && fs::exists(it->path() / "DONE", ignored);
    if (complete && (newest.empty() || it->path() > newest)) newest = it->path();
  }
  return newest;
}

uint64_t CheckpointSteps(const std::string& run_folder) {
  const fs::path newest = NewestCheckpoint(run_folder);
  uint64_t steps = 0;
  if (!newest.empty()) (void)absl::SimpleAtoi(newest.filename().string().substr(sizeof(kStep) - 1), &steps);
  return steps;
}

// Whether a process has the run's folder.
bool IsInUse(const std::string& run_folder) {
  const int fd = open((run_folder + "/lock").c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
  if (fd < 0) return false;
  const bool in_use = flock(fd, LOCK_SH | LOCK_NB) != 0;  // NFS refuses LOCK_EX on what was opened for reading.
  close(fd);
  return in_use;
}

absl::Status CopyError(const std::string& to, const std::error_code& error) {
  const std::string message = absl::StrCat("cannot make ", to, ": ", error.message());
  if (error == std::errc::no_space_on_device) return absl::ResourceExhaustedError(message);
  return absl::PermissionDeniedError(message);
}

}  // namespace

std::string RunLauncher::RunName(const RunKey& run) {
  if (run.test && run.trial > 1) return absl::StrFormat("test-%05d-s%d", run.trial, run.seed_index);
  if (run.test) return absl::StrCat(run.trial == 0 ? "test-base-s" : "test-best-s", run.seed_index);
  return absl::StrFormat("trial-%05d-s%d", run.trial, run.seed_index);
}

std::vector<std::string> RunLauncher::Arguments(const Point& point, uint64_t seed, const std::string& runs_dir,
                                                const std::string& name) const {
  std::vector<std::string> arguments = {"train",
                                        "--config",
                                        options_.folder + "/base.yaml",
                                        "--runs-dir",
                                        runs_dir,
                                        "--name",
                                        name,
                                        "--seed",
                                        absl::StrCat(seed),
                                        "--runners",
                                        absl::StrCat(options_.cores_per_slot)};
  if (!options_.device.empty()) arguments.insert(arguments.end(), {"--device", options_.device});
  for (const std::string& override : Overrides(*space_, point)) {
    arguments.insert(arguments.end(), {"--set", override});
  }
  return arguments;
}

std::string RunLauncher::Command(const Point& point, uint64_t seed, const std::string& name) const {
  std::vector<std::string> words = {"skein"};
  for (const std::string& word : Arguments(point, seed, "runs", name)) words.push_back(ShellWord(word));
  return absl::StrJoin(words, " ");
}

LaunchOptions RunLauncher::OptionsOf(const Job& job) const {
  LaunchOptions options;
  options.config_path = options_.folder + "/base.yaml";
  options.runs_dir = options_.folder;
  options.name = RunName(job.run);
  options.seed = job.seed;
  options.runners = absl::StrCat(options_.cores_per_slot);
  options.device = options_.device;
  options.overrides = Overrides(*space_, job.point);
  return options;
}

absl::Status RunLauncher::Start(const Job& job) {
  const std::string name = RunName(job.run), folder = RunFolder(job.run);
  if (IsInUse(folder)) return absl::UnavailableError(absl::StrCat(folder, " is in use by another process; stop it"));
  const auto plan = PlanLaunch(OptionsOf(job), options_.cores_per_slot);
  if (!plan.ok()) {
    if (ExitCodeOf(plan.status()) != kExitUsage) return plan.status();
    return absl::InvalidArgumentError(absl::StrCat("its configuration is refused: ", plan.status().message()));
  }
  const std::optional<Spot> spot = FreeSpot();
  if (!spot) return absl::UnavailableError("the worker or the job of the array that had a slot has just ended");
  const bool direct = options_.launcher.empty() || !spot->lent.empty();
  std::vector<std::string> words = Arguments(job.point, job.seed, options_.folder, name);
  // Another training may still be ending, or a slot's share be taken for now.
  words.push_back("--wait-for-resources");
  if (direct) words.push_back("--exit-with-parent");
  if (job.until < options_.total_steps) {
    words.insert(words.end(), {"--stop-at-step", absl::StrCat(job.until)});
  }
  if (job.until < options_.total_steps || !absl::StartsWith(options_.metric, kEval)) words.push_back("--no-eval");
  const double gpus = options_.share.gpus.value_or(0);
  // What the kernel cannot hold it to: Torch's allocator does.
  if (direct && gpus > 0 && gpus < 1 && !plan->config.resources().learner().has_gpus()) {
    words.insert(words.end(), {"--set", absl::StrCat("resources.learner.gpus=", gpus)});
  }
  Active active;
  active.spot = *spot;
  active.until = job.until;
  active.began = MonotonicNow();
  if (absl::Status s = Begin(name, std::move(words), &active); !s.ok()) return s;
  active_[job.run] = std::move(active);
  return absl::OkStatus();
}

absl::Status RunLauncher::Begin(const std::string& name, std::vector<std::string> words, Active* active) {
  const std::string log_path = absl::StrCat(options_.folder, "/log/", name, ".log");
  const Spot& spot = active->spot;
  if (!spot.lent.empty()) {
    std::error_code error;
    auto lent = LentTraining::Begin(spot.lent, {.id = absl::StrCat(name, "@", absl::GetCurrentTimeNanos()),
                                                .name = name,
                                                .cwd = fs::current_path(error).string(),
                                                .folder = options_.folder,
                                                .arguments = std::move(words),
                                                .log_path = log_path});
    if (!lent.ok()) return lent.status();
    active->lent = *std::move(lent);
    return absl::OkStatus();
  }
  const auto program = FindProgram(options_.program_folder, "skein");
  if (!program.ok()) return absl::NotFoundError(program.status().message());
  std::vector<std::string> command = options_.launcher;
  if (!spot.array.empty()) command.push_back("--jobid=" + ArrayPlaces::JobOf(spot.array));
  command.push_back(*program);
  command.insert(command.end(), words.begin(), words.end());
  const bool direct = options_.launcher.empty();
  std::vector<std::string> environment;
  if (!options_.gpus.empty()) environment.push_back("CUDA_VISIBLE_DEVICES=" + options_.gpus[spot.slot]);
  auto child = Child::Start({.name = name,
                             .program = direct ? command[0] : "/usr/bin/env",
                             .arguments = {command.begin() + (direct ? 1 : 0), command.end()},
                             .log_path = log_path,
                             .extra_env = environment,
                             .share = options_.share,
                             .enforcer = direct ? &enforcer_ : nullptr});
  if (!child.ok()) return child.status();
  active->child = *std::move(child);
  return absl::OkStatus();
}

uint32_t RunLauncher::slots() const {
  const size_t own = options_.places == nullptr ? options_.slots : options_.places->List().size();
  return static_cast<uint32_t>(own + lent_slots().size());
}

uint32_t RunLauncher::free_slots() const { return std::max(slots(), busy()) - busy(); }

std::optional<RunLauncher::Spot> RunLauncher::FreeSpot() const {
  const auto taken = [&](const Spot& spot) {
    return std::any_of(active_.begin(), active_.end(), [&](const auto& one) { return one.second.spot == spot; });
  };
  for (uint32_t slot = 0; options_.places == nullptr && slot < options_.slots; ++slot) {
    if (const Spot spot{.slot = slot}; !taken(spot)) return spot;
  }
  if (options_.places != nullptr) {
    for (const std::string& place : options_.places->List()) {
      if (const Spot spot{.array = place}; !taken(spot)) return spot;
    }
  }
  for (const std::string& lent : lent_slots()) {
    if (const Spot spot{.lent = lent}; !taken(spot)) return spot;
  }
  return std::nullopt;
}

std::string RunLauncher::held_by() const {
  const auto here =
      std::find_if(active_.begin(), active_.end(), [](const auto& one) { return one.second.child != nullptr; });
  return here == active_.end() ? "" : here->second.child->held_by();
}

ProcessUsage RunLauncher::Usage() const {
  std::vector<pid_t> pids;
  for (const auto& [run, active] : active_) {
    if (active.child != nullptr) pids.push_back(active.child->process().pid());
  }
  ProcessUsage usage = UsageOfTrees(pids);
  usage.cpu_seconds += CpuSecondsOfEndedChildren();
  return usage;
}

void RunLauncher::Stop(const RunKey& run) {
  const auto found = active_.find(run);
  if (found == active_.end() || std::exchange(found->second.asked, true)) return;
  if (found->second.lent != nullptr) {
    found->second.lent->Stop();
  } else {
    found->second.child->process().Signal(SIGTERM);
  }
}

std::vector<JobEnd> RunLauncher::Poll() {
  std::vector<JobEnd> ends;
  for (auto it = active_.begin(); it != active_.end();) {
    const Active& active = it->second;
    const auto code = active.lent != nullptr ? active.lent->Poll() : active.child->process().Poll();
    if (!code) {
      ++it;
      continue;
    }
    ends.push_back(Describe(it->first, active, *code));
    it = active_.erase(it);
  }
  return ends;
}

JobEnd RunLauncher::Describe(const RunKey& run, const Active& active, int code) const {
  JobEnd end;
  end.run = run;
  end.wall_time = MonotonicNow() - active.began;
  end.steps = CheckpointSteps(RunFolder(run));
  std::error_code error;
  const bool evaluates = absl::StartsWith(options_.metric, kEval) && active.until >= options_.total_steps;
  const bool evaluated = !evaluates || fs::exists(RunFolder(run) + "/eval.json", error);
  if (code == kExitOk && end.steps >= active.until && evaluated) return end;
  // A job whose time is up, or a worker that ends, takes its trainings along. That is no failure of theirs: they go on
  // elsewhere.
  const std::string& place = active.spot.array;
  if (active.asked || (active.lent != nullptr && active.lent->lost()) ||
      (!place.empty() && !options_.places->StillRuns(place))) {
    end.how = JobEnd::How::kInterrupted;
    return end;
  }
  // Short of its end with code 0: somebody else has stopped it, or it will never come further.
  end.how = code == kExitUsage ? JobEnd::How::kRefused : JobEnd::How::kFailed;
  if (code == kExitIo && fs::space(options_.folder, error).available < kRoom && !error) {
    end.how = JobEnd::How::kDiskFull;
  }
  end.why = code != kExitOk ? active.lent != nullptr ? active.lent->why() : OneLine(active.child->DescribeExit(code))
            : end.steps < active.until ? absl::StrCat("it ended at ", end.steps, " of ", active.until, " env steps")
                                       : "it ended without eval.json";
  return end;
}

absl::Duration RunLauncher::ActiveTime() const {
  absl::Duration time;
  for (const auto& one : active_) time += MonotonicNow() - one.second.began;
  return time;
}

RunLog& RunLauncher::LogOf(const RunKey& run) {
  return logs_.try_emplace(run, RunFolder(run) + "/metrics.jsonl", options_.metric).first->second;
}

absl::StatusOr<std::optional<double>> RunLauncher::Value(const RunKey& run, uint64_t steps, bool at_rest) {
  const bool evaluates = absl::StartsWith(options_.metric, kEval);
  if (!evaluates) {  // While it trains, too: a name that no line has is seen at the first of them.
    if (absl::Status s = LogOf(run).Update(); !s.ok()) {
      const std::string place = options_.metric_place.empty() ? "" : options_.metric_place + ": ";
      return absl::Status(s.code(), absl::StrCat(place, s.message()));
    }
  }
  if (at_rest && (IsActive(run) || CheckpointSteps(RunFolder(run)) < steps)) return std::nullopt;
  if (evaluates) {
    if (!at_rest) return std::nullopt;
    const auto text = ReadFile(RunFolder(run) + "/eval.json", 1 << 26);
    if (!text.ok()) return std::nullopt;  // It is made when the job is started again.
    const auto json = nlohmann::json::parse(*text, nullptr, false);
    const std::string name = options_.metric.substr(kEval.size());
    if (!json.is_object() || !json.contains(name) || !json[name].is_number()) {
      return std::numeric_limits<double>::quiet_NaN();
    }
    return json[name].get<double>();
  }
  const std::optional<double> value = LogOf(run).ValueAt(steps);
  if (at_rest && !value) return std::numeric_limits<double>::quiet_NaN();
  return value;
}

uint64_t RunLauncher::Steps(const RunKey& run) {
  RunLog& log = LogOf(run);
  log.Update().IgnoreError();
  return log.steps();
}

absl::Status RunLauncher::Copy(const RunKey& from, const Job& to) {
  const std::string target = RunFolder(to.run), partial = target + ".partial", source = RunFolder(from);
  std::error_code error;
  if (fs::exists(target, error)) return absl::OkStatus();
  const fs::path checkpoint = NewestCheckpoint(source);
  if (checkpoint.empty())
    return absl::NotFoundError(absl::StrCat(source, "/checkpoints: no complete checkpoint to copy"));
  fs::remove_all(partial, error);
  fs::create_directories(partial + "/checkpoints", error);
  if (!error)
    fs::copy(checkpoint, fs::path(partial) / "checkpoints" / checkpoint.filename(), fs::copy_options::recursive, error);
  if (!error) fs::copy_file(source + "/metrics.jsonl", partial + "/metrics.jsonl", error);
  if (error) return CopyError(partial, error);
  const auto plan = PlanLaunch(OptionsOf(to), options_.cores_per_slot);
  // A configuration that is refused is refused again, and reported, when it is to be started.
  const std::string yaml = plan.ok() ? ToYaml(plan->config) : "";
  if (absl::Status status = WriteFileSynced(partial + "/config.yaml", yaml); !status.ok()) return status;
  fs::rename(partial, target, error);
  if (error) return CopyError(target, error);
  return SyncFolder(options_.folder);
}

}  // namespace skein
