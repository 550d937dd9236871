// SPDX-License-Identifier: Apache-2.0
#include "bench/scaling_training.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <memory>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/config/algorithm_rules.h"
#include "base/config/config.h"
#include "base/net/grpc_transport.h"
#include "base/process/clock.h"
#include "base/process/exit_code.h"
#include "base/process/file.h"
#include "base/process/subprocess.h"
#include "launch/child.h"
#include "launch/recipe.h"
#include "launch/status_client.h"
#include "nlohmann/json.hpp"

namespace skein {
namespace {

constexpr absl::Duration kTick = absl::Milliseconds(10);
constexpr absl::Duration kStopLimit = absl::Seconds(90);
// Iterations that go by while several actor processes are still starting, at most.
constexpr uint64_t kJoiningIterations = 2000;
constexpr char kRunName[] = "run";

// Lines of a file that grows.
class GrowingFile {
 public:
  explicit GrowingFile(std::string path) : path_(std::move(path)) {}

  const std::vector<std::string>& lines() const { return lines_; }

  // Reads what has been added; a line counts once its newline is there.
  void Poll() {
    std::ifstream file(path_, std::ios::binary);
    file.seekg(read_);
    std::string text{std::istreambuf_iterator<char>(file), {}};
    size_t begin = 0;
    for (size_t end = text.find('\n'); end != std::string::npos; end = text.find('\n', begin)) {
      lines_.push_back(text.substr(begin, end - begin));
      begin = end + 1;
    }
    read_ += static_cast<std::streamoff>(begin);
  }

 private:
  const std::string path_;
  std::streamoff read_ = 0;
  std::vector<std::string> lines_;
};

// A port that was free a moment ago.
int FreePort() {
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof(address);
  const bool bound = fd >= 0 && bind(fd, reinterpret_cast<sockaddr*>(&address), size) == 0 &&
                     getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size) == 0;
  if (fd >= 0) close(fd);
  return bound ? ntohs(address.sin_port) : 0;
}

// Whether all actor processes have joined; asks twice a second until they have.
class JoinWatch {
 public:
  JoinWatch(uint32_t actors, int port) : actors_(actors) {
    if (actors > 1) client_ = std::make_unique<StatusClient>(JoinHostPort("127.0.0.1", port));
  }

  bool Complete(absl::Duration now) {
    if (client_ == nullptr) return true;  // An iteration cannot have been finished without the only one.
    if (now < next_) return false;
    next_ = now + absl::Milliseconds(500);
    const auto status = client_->Get(absl::Milliseconds(500));
    if (!status.ok()) return false;
    const auto& members = status->members();
    const auto joined =
        std::count_if(members.begin(), members.end(), [](const auto& m) { return m.role() == "actor"; });
    if (joined < actors_) return false;
    client_ = nullptr;
    return true;
  }

 private:
  const int64_t actors_;
  std::unique_ptr<StatusClient> client_;
  absl::Duration next_;
};

std::string LastLine(const std::string& path) {
  const std::string text = ReadFile(path).value_or("");
  const std::vector<std::string> lines = absl::StrSplit(text, '\n', absl::SkipWhitespace());
  return lines.empty() ? "it says nothing" : lines.back();
}

absl::Status EndedEarly(const std::string& what, int code, const std::string& log_path) {
  const std::string text =
      absl::StrCat(what, ": the training ended with code ", code, ": ", LastLine(log_path), " (log: ", log_path, ")");
  if (code == kExitUsage) return absl::InvalidArgumentError(text);
  if (code == kExitData) return absl::DataLossError(text);
  if (code == kExitUnavailable) return absl::UnavailableError(text);
  return absl::InternalError(text);
}

// Asks it to stop and waits; ignores its remaining output.
void StopTraining(Subprocess* process) {
  process->Signal(SIGTERM);
  process->Wait(kStopLimit);  // The destructor kills what has not ended by then.
}

// Episodes that an iteration plays at once: those of a search are directions, two signs and directions.num_envs
// episodes of each.
uint64_t Parts(const v1::RunConfig& config, const ScalingPoint& point) {
  return point.environments() * (SearchesDirections(config) ? uint64_t{2} * config.directions().num_envs() : 1);
}

// The env steps of an iteration, at most.
uint64_t IterationSteps(const v1::RunConfig& config, const TrainingSetup& setup, const ScalingPoint& point) {
  const uint64_t wanted =
      setup.steps_per_env > 0 ? setup.steps_per_env * point.environments() : setup.steps_per_iteration;
  return FittingSteps(wanted, Parts(config, point));
}

std::vector<std::string> SizesOf(const v1::RunConfig& config, const TrainingSetup& setup, const ScalingPoint& point) {
  const uint64_t steps = IterationSteps(config, setup, point);
  const std::string algorithm = AlgorithmName(config);
  std::vector<std::string> sizes;
  if (SearchesDirections(config)) {
    sizes = {absl::StrCat("directions.num_dirs=", point.environments()),
             absl::StrCat("directions.dir_chunk=", point.envs_per_runner),
             absl::StrCat("directions.episode_length=", steps / Parts(config, point))};
    if (HasAlgorithmSetting(config, "top_dirs") && TopDirections(config) > point.environments()) {
      sizes.push_back(absl::StrCat(algorithm, ".top_dirs=", point.environments()));
    }
    return sizes;
  }
  sizes = {absl::StrCat("rollout.num_envs=", point.environments()),
           absl::StrCat("rollout.envs_per_runner=", point.envs_per_runner),
           absl::StrCat("rollout.steps_per_iteration=", steps)};
  if (MinibatchSize(config) > steps) sizes.push_back(absl::StrCat(algorithm, ".minibatch_size=", steps));
  return sizes;
}

UsageRecorder::Sources UsageSources(GpuMonitor* gpu) {
  UsageRecorder::Sources sources;
  sources.proc_stat = [] { return ReadFile("/proc/stat").value_or(""); };
  if (gpu != nullptr) sources.gpu = [gpu] { return MeanUtilization(gpu->Sample(MonotonicNow())); };
  return sources;
}

}  // namespace

absl::StatusOr<v1::RunConfig> ReadSetupConfig(const TrainingSetup& setup) {
  std::vector<std::string> overrides = setup.overrides;
  if (!setup.env_id.empty()) overrides.insert(overrides.begin(), "env.id=" + nlohmann::json(setup.env_id).dump());
  const auto recipe = ChooseRecipe(setup.recipe, setup.config_path, overrides, /*learners=*/1, setup.command);
  if (!recipe.ok()) return recipe.status();
  return ReadRunConfig(setup.config_path, overrides, recipe->settings);
}

absl::StatusOr<std::vector<std::string>> SizeSettings(const TrainingSetup& setup, const ScalingPoint& point) {
  const auto config = ReadSetupConfig(setup);
  if (!config.ok()) return config.status();
  return SizesOf(*config, setup, point);
}

absl::StatusOr<LaunchOptions> TrainingOptions(const TrainingSetup& setup, const ScalingPoint& point,
                                              const std::string& runs_dir) {
  const auto config = ReadSetupConfig(setup);
  if (!config.ok()) return config.status();
  const uint64_t steps = IterationSteps(*config, setup, point);
  LaunchOptions options;
  options.recipe = setup.recipe;
  options.config_path = setup.config_path;
  options.env_id = setup.env_id;
  options.seed = setup.seed;
  options.name = kRunName;
  options.runs_dir = runs_dir;
  options.resume = "never";
  options.session.no_eval = true;
  options.runners = absl::StrCat(point.runners);
  options.actors = std::min(setup.actors, point.runners);
  const uint64_t iterations =
      setup.warmup + setup.iterations + 1 + (options.actors > 1 ? kJoiningIterations : uint64_t{0});
  options.overrides = setup.overrides;
  for (std::string& size : SizesOf(*config, setup, point)) options.overrides.push_back(std::move(size));
  options.overrides.push_back(absl::StrCat("total_steps=", steps * iterations));
  options.overrides.push_back(absl::StrCat("checkpoint.interval_steps=", 2 * steps * iterations));
  const auto plan = PlanLaunch(options, 1);
  if (!plan.ok()) return plan.status();
  return options;
}

std::vector<std::string> TrainArguments(const LaunchOptions& options) {
  std::vector<std::string> arguments = {"train",
                                        "--name",
                                        options.name,
                                        "--runs-dir",
                                        options.runs_dir,
                                        "--resume",
                                        options.resume,
                                        "--runners",
                                        options.runners,
                                        "--actors",
                                        absl::StrCat(options.actors),
                                        "--recipe",
                                        options.recipe};
  if (!options.config_path.empty()) arguments.insert(arguments.end(), {"--config", options.config_path});
  if (!options.env_id.empty()) arguments.insert(arguments.end(), {"--env", options.env_id});
  if (options.seed) arguments.insert(arguments.end(), {"--seed", absl::StrCat(*options.seed)});
  if (options.ports.coordinator != 0)
    arguments.insert(arguments.end(), {"--port", absl::StrCat(options.ports.coordinator)});
  if (options.session.no_eval) arguments.push_back("--no-eval");
  for (const std::string& one : options.overrides) arguments.insert(arguments.end(), {"--set", one});
  return arguments;
}

absl::StatusOr<ScalingMeasurement> MeasureRun(const TrainingSetup& setup, LaunchOptions options,
                                              const std::string& what, GpuMonitor* gpu, const StopRequested& stop) {
  const std::string& runs_dir = options.runs_dir;
  if (options.actors > 1) options.ports.coordinator = FreePort();
  const auto program = FindProgram(setup.program_folder, "skein");
  if (!program.ok()) return program.status();
  std::error_code error;
  std::filesystem::remove_all(runs_dir, error);
  if (!std::filesystem::create_directories(runs_dir, error)) {
    return absl::PermissionDeniedError(absl::StrCat(runs_dir, ": cannot be made: ", error.message()));
  }
  const std::string log_path = runs_dir + "/skein.log";
  Subprocess::Options spawn;
  spawn.argv = {*program};
  const std::vector<std::string> arguments = TrainArguments(options);
  spawn.argv.insert(spawn.argv.end(), arguments.begin(), arguments.end());
  spawn.output_path = log_path;
  auto process = Subprocess::Spawn(spawn);
  if (!process.ok()) return process.status();

  GrowingFile metrics(absl::StrCat(runs_dir, "/", options.name, "/metrics.jsonl"));
  JoinWatch joining(options.actors, options.ports.coordinator);
  UsageRecorder usage(UsageSources(gpu));
  std::optional<size_t> warm_lines;  // Lines that end the warm-up; known once all actors are there.
  std::optional<size_t> first;       // Index of the last of them.
  absl::Duration measured_from;
  const auto done = [&] {
    return first && metrics.lines().size() >= *first + 1 + setup.iterations &&
           MonotonicNow() - measured_from >= setup.time;
  };
  while (!done()) {
    const bool ended = (*process)->Poll().has_value();  // Asked first: what it wrote before its end counts.
    metrics.Poll();
    const absl::Duration now = MonotonicNow();
    if (!warm_lines && !metrics.lines().empty() && joining.Complete(now)) {
      // What was granted before the last of several actors came is not done yet: in mode overlapped two iterations, and
      // in the one after them those that came early still have more tickets than the others.
      warm_lines = options.actors > 1 ? metrics.lines().size() + 2 + setup.warmup : setup.warmup;
    }
    if (first) {
      usage.Tick(now);
    } else if (warm_lines && metrics.lines().size() >= *warm_lines) {
      first = *warm_lines - 1;
      measured_from = now;
      usage.Begin(now);
    }
    if (ended && !done()) {
      return EndedEarly(what, (*process)->Poll().value_or(-1), log_path);
    }
    if (stop()) {
      StopTraining(process->get());
      std::filesystem::remove_all(runs_dir, error);
      return absl::CancelledError("stopped on request");
    }
    (*process)->Wait(kTick);
  }
  usage.End(MonotonicNow());
  StopTraining(process->get());

  const auto begin = metrics.lines().begin() + static_cast<std::ptrdiff_t>(*first);
  // Several may have come between two looks.
  const size_t iterations = setup.time > absl::ZeroDuration() ? metrics.lines().size() - *first - 1 : setup.iterations;
  auto times = ReadIterationTimes({begin, begin + 1 + static_cast<std::ptrdiff_t>(iterations)});
  if (!times.ok()) return times.status();
  ScalingMeasurement measured;
  measured.actors = options.actors;
  measured.times = *std::move(times);
  measured.steps_per_iteration = measured.times.env_steps / iterations;
  measured.usage = usage.samples();
  std::filesystem::remove_all(runs_dir, error);
  return measured;
}

absl::StatusOr<ScalingMeasurement> MeasureTraining(const TrainingSetup& setup, const ScalingPoint& point,
                                                   const std::string& folder, GpuMonitor* gpu,
                                                   const StopRequested& stop) {
  auto options = TrainingOptions(setup, point, absl::StrCat(folder, "/run-", point.name()));
  if (!options.ok()) return options.status();
  auto sizes = SizeSettings(setup, point);
  if (!sizes.ok()) return sizes.status();
  auto measured = MeasureRun(setup, *std::move(options), point.name(), gpu, stop);
  if (!measured.ok()) return measured.status();
  measured->point = point;
  measured->sizes = *std::move(sizes);
  return measured;
}

}  // namespace skein
