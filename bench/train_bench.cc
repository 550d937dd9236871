// SPDX-License-Identifier: Apache-2.0
// skein bench train: `skein train` from end to end against bare physics and against physics plus update.
#include <algorithm>
#include <cmath>
#include <filesystem>
#include <memory>
#include <optional>
#include <vector>

#include "CLI/CLI.hpp"
#include "absl/strings/str_cat.h"
#include "base/command/arguments.h"
#include "base/config/config_reflection.h"
#include "base/process/cores.h"
#include "base/process/file.h"
#include "bench/env_loops.h"
#include "bench/policy_actions.h"
#include "bench/temporary_folder.h"
#include "bench/thread_environment.h"
#include "bench/training_log.h"
#include "bench/verb.h"
#include "bench/verbs.h"
#include "env/registry.h"
#include "launch/child.h"
#include "launch/visible_gpus.h"

namespace skein {
namespace {

constexpr char kRate[] = "env_steps_per_second";
constexpr char kLimit[] = "limit_env_steps_per_second";
constexpr char kRoofline[] = "roofline_env_steps_per_second";
constexpr char kUpdate[] = "update_seconds_per_env_step";
constexpr uint32_t kReplayedEpisodes = 8;  // Of each thread and policy, in the limit of --limit policy.
constexpr uint64_t kPolicies = 8;          // Evenly spaced over the run that comes first there.
constexpr uint64_t kNotMeasured = 3;       // Iterations: the first two and the last.

struct TrainBenchOptions : BenchOptions {
  std::string runners;
  uint64_t iterations = 0;  // Measured ones of each run; 0 = what takes about `seconds`.
  std::string limit = "random";
};

// Threads that collect: in mode on_device the learner's.
uint32_t Runners(const LaunchPlan& plan) { return plan.on_device ? 1 : plan.actor_runners.at(0); }

Json DividedBy(const Json& seconds, double divisor) {
  Json divided = Json::object();
  for (const auto& item : seconds.items()) divided[item.key()] = item.value().get<double>() / divisor;
  return divided;
}

// Runs of `skein train` in a temporary folder, one after the other.
class TrainingUnderTest {
 public:
  TrainingUnderTest(const TrainBenchOptions& options, const LaunchPlan& plan, TemporaryFolder folder)
      : options_(options), plan_(plan), folder_(std::move(folder)) {}

  // One run that takes about `duration` if it is as fast as `expected` env steps per second.
  absl::StatusOr<Json> Measure(absl::Duration duration, double expected, const ShutdownSignal& shutdown);
  // The checkpoints of a run as long as those, evenly spaced over it.
  absl::StatusOr<std::vector<std::string>> TrainPolicies(absl::Duration duration, double expected,
                                                         const ShutdownSignal& shutdown);

 private:
  uint64_t Steps(absl::Duration duration, double expected) const;
  absl::Status Train(uint64_t steps, uint64_t checkpoint_interval, const std::string& name,
                     const ShutdownSignal& shutdown);
  Json Describe(const SteadyState& figures) const;

  const TrainBenchOptions& options_;
  const LaunchPlan& plan_;
  const TemporaryFolder folder_;
  int runs_ = 0;
};

absl::Status TrainingUnderTest::Train(uint64_t steps, uint64_t checkpoint_interval, const std::string& name,
                                      const ShutdownSignal& shutdown) {
  const auto program = FindProgram(ProgramFolder(), "skein");
  if (!program.ok()) return program.status();
  std::vector<std::string> arguments = {"train",     "--runners", options_.runners, "--runs-dir", folder_.path(),
                                        "--no-eval", "--resume",  "never",          "--recipe",   "none"};
  const auto add = [&](const std::string& flag, const std::string& value) {
    arguments.push_back(flag);
    arguments.push_back(value);
  };
  if (!options_.config_path.empty()) add("--config", options_.config_path);
  if (!options_.env_id.empty()) add("--env", options_.env_id);
  if (options_.seed) add("--seed", absl::StrCat(*options_.seed));
  for (const std::string& assignment : options_.overrides) add("--set", assignment);
  add("--set", absl::StrCat("total_steps=", steps));
  add("--set", absl::StrCat("name=", name));
  if (checkpoint_interval > 0) {
    add("--set", absl::StrCat("checkpoint.interval_steps=", checkpoint_interval));
    add("--set", absl::StrCat("checkpoint.keep=", kPolicies + 2));
  }
  auto child = Child::Start({.name = "skein train",
                             .program = *program,
                             .arguments = arguments,
                             .log_path = absl::StrCat(folder_.path(), "/", name, ".log")});
  if (!child.ok()) return child.status();
  while (!(*child)->process().Wait(absl::Milliseconds(100))) {
    if (!shutdown.signalled()) continue;
    (*child)->Stop(absl::Seconds(10));
    return absl::CancelledError("stopped on request");
  }
  const int code = (*child)->process().Poll().value_or(0);
  return code == 0 ? absl::OkStatus() : (*child)->ExitStatus(code);
}

uint64_t TrainingUnderTest::Steps(absl::Duration duration, double expected) const {
  const uint64_t iteration = plan_.config.rollout().steps_per_iteration();
  const double wanted = expected * absl::ToDoubleSeconds(duration) / static_cast<double>(iteration);
  const uint64_t measured = options_.iterations > 0
                                ? options_.iterations
                                : std::max<uint64_t>(kMinIterations - kNotMeasured, std::llround(wanted));
  return (measured + kNotMeasured) * iteration;
}

absl::StatusOr<std::vector<std::string>> TrainingUnderTest::TrainPolicies(absl::Duration duration, double expected,
                                                                          const ShutdownSignal& shutdown) {
  const uint64_t steps = Steps(duration, expected);
  if (absl::Status s = Train(steps, std::max<uint64_t>(1, steps / kPolicies), "policies", shutdown); !s.ok()) return s;
  std::vector<std::string> checkpoints;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(folder_.path() + "/policies/checkpoints", error)) {
    if (entry.is_directory() && !entry.is_symlink()) checkpoints.push_back(entry.path());
  }
  if (checkpoints.empty()) return absl::InternalError("skein train wrote no checkpoint");
  return checkpoints;
}

absl::StatusOr<Json> TrainingUnderTest::Measure(absl::Duration duration, double expected,
                                                const ShutdownSignal& shutdown) {
  const std::string name = absl::StrCat("round-", ++runs_);
  if (absl::Status s = Train(Steps(duration, expected), 0, name, shutdown); !s.ok()) return s;
  const auto text = ReadFile(absl::StrCat(folder_.path(), "/", name, "/metrics.jsonl"));
  if (!text.ok()) return text.status();
  const auto figures = ReadTrainingLog(*text);
  if (!figures.ok()) return figures.status();
  return Describe(*figures);
}

Json TrainingUnderTest::Describe(const SteadyState& figures) const {
  const v1::RunConfig& config = plan_.config;
  const double runners = Runners(plan_);
  const double steps = static_cast<double>(figures.env_steps);
  Json row = {{kRate, steps / figures.seconds},
              {"agent_steps_per_second", static_cast<double>(figures.samples) / figures.seconds},
              {"iterations", figures.iterations},
              {"seconds_per_iteration", figures.seconds / static_cast<double>(figures.iterations)},
              {kUpdate, figures.update_seconds_per_env_step()},
              {"update_wall_seconds_per_env_step", figures.learner_seconds.value("update", 0.0) / steps}};
  if (figures.learner_seconds.contains("update_cpu")) {
    row["update_cpu_seconds_per_env_step"] = figures.learner_seconds["update_cpu"].get<double>() / steps;
  }
  row["seconds_per_env_step"] = {{"actors", DividedBy(figures.actor_seconds, steps)},
                                 {"learner", DividedBy(figures.learner_seconds, steps)}};
  row["share_of_iteration"] = {{"actors", DividedBy(figures.actor_seconds, runners * figures.seconds)},
                               {"learner", DividedBy(figures.learner_seconds, figures.seconds)}};
  row["wire_serialisation_waiting_share"] = OverheadShare(figures, runners, config.sync().mode());
  return row;
}

// Bare mj_step with actions of the trained policies in place of random ones: the cost of physics depends on the policy.
class PolicyLimit {
 public:
  static absl::StatusOr<PolicyLimit> Make(const v1::RunConfig& config, uint32_t threads,
                                          const std::vector<std::string>& checkpoints) {
    PolicyLimit limit;
    for (const std::string& checkpoint : checkpoints) {
      auto actions = RecordPolicyActions(checkpoint, config, threads, kReplayedEpisodes);
      if (!actions.ok()) return actions.status();
      auto replay = EnvLimit::MakeReplay(config, *std::move(actions), kReplayedEpisodes);
      if (!replay.ok()) return replay.status();
      limit.replays_.push_back(*std::move(replay));
    }
    return limit;
  }

  // As many steps with each policy.
  double Measure(absl::Duration duration) {
    const double count = static_cast<double>(replays_.size());
    double seconds_per_step = 0;
    for (const auto& replay : replays_) seconds_per_step += 1 / replay->Measure(duration / count);
    return count / seconds_per_step;
  }

 private:
  std::vector<std::unique_ptr<EnvLimit>> replays_;
};

absl::Status RunTrainBench(const TrainBenchOptions& options, const ShutdownSignal& shutdown) {
  const auto plan = PlanBenchRun(options, options.runners);
  if (!plan.ok()) return plan.status();
  const v1::RunConfig& config = plan->config;
  const uint32_t runners = Runners(*plan);
  if (absl::Status s = CheckWritable(options.json_path); !s.ok()) return s;
  ProgressLine progress = StderrProgress();
  progress.Show("playing the episodes of the limit", -absl::Seconds(1));
  const auto limit = EnvLimit::Make(config, runners);
  if (!limit.ok()) return limit.status();
  if (options.limit == "policy" && !FindEnvExtras(config.env().id()).physics) {
    return absl::InvalidArgumentError(
        absl::StrCat("--limit policy: only environments of MuJoCo have it, ", config.env().id(), " does not"));
  }
  auto folder = TemporaryFolder::Make();
  if (!folder.ok()) return folder.status();
  LetChildrenChooseThreads();
  TrainingUnderTest training(options, *plan, *std::move(folder));

  VerbRun run;
  run.config = DescribeConfig("train", options, config);
  run.heading = absl::StrCat(
      config.env().id(), ": skein train with ", plan->on_device ? "" : absl::StrCat(runners, " runners x "),
      plan->on_device ? config.rollout().num_envs() : config.rollout().envs_per_runner(), " environments, mode ",
      config_reflection::EnumName(v1::SyncMode_descriptor()->FindValueByNumber(config.sync().mode())),
      ", against bare ", (*limit)->what(), " on ", runners, " threads (limit) and that plus the update (roofline), ",
      "env-steps/s; ratio is to the roofline");
  run.config["runners"] = runners;
  run.config["iterations"] = options.iterations;
  run.config["limit"] = (*limit)->what();
  run.config["limit_actions"] = options.limit;
  run.contest.rate = kRate;
  run.contest.ours_title = "train";
  run.contest.limit_title = "bare " + (*limit)->what();
  double expected = 0;
  std::optional<PolicyLimit> policy_limit;
  run.contest.ours = [&](absl::Duration duration) { return training.Measure(duration, expected, shutdown); };
  run.contest.limit = [&](absl::Duration duration) -> absl::StatusOr<Json> {
    if (options.limit == "random" || !policy_limit) {
      expected = (*limit)->Measure(duration);
      if (absl::Status s = (*limit)->failure(); !s.ok()) return s;
    }
    if (options.limit == "random") return Json{{kLimit, expected}};
    if (!policy_limit) {
      const auto policies = training.TrainPolicies(duration, expected, shutdown);
      if (!policies.ok()) return policies.status();
      auto made = PolicyLimit::Make(config, runners, *policies);
      if (!made.ok()) return made.status();
      policy_limit = *std::move(made);
    }
    expected = policy_limit->Measure(duration);
    return Json{{kLimit, expected}};
  };
  run.contest.reference = kRoofline;
  // Whether the update takes its time from the cores that step environments.
  const bool shares_cores = config.sync().mode() == v1::SYNC_MODE_OVERLAPPED &&
                            (config.learner().device() == "cpu" || CountVisibleGpus() == 0);
  const double update_threads = config.learner().torch_threads();
  run.contest.derive = [shares_cores, update_threads, runners](Json* row) {
    const double limit_rate = row->at(kLimit).get<double>(), update = row->at(kUpdate).get<double>();
    (*row)[kRoofline] = 1 / (1 / limit_rate + update);
    (*row)["ratio_to_physics"] = row->at(kRate).get<double>() / limit_rate;
    if (!shares_cores) return;
    const double cores = Cores(), physics = std::min<double>(runners, cores) / limit_rate;
    const double most = std::min({limit_rate, 1 / update, cores / (physics + update_threads * update)});
    (*row)["ratio_at_most"] = most * (1 / limit_rate + update);
  };
  run.columns = {{kRoofline, "roofline"}, {"ratio_to_physics", "to physics"}};
  if (shares_cores) run.columns.push_back({"ratio_at_most", "at most"});
  run.finish = [](Json* summary) {
    (*summary)["ratio_to_physics"] = summary->at(kRate).get<double>() / summary->at(kLimit).get<double>();
  };
  return MeasureAndReport(run, options, shutdown, &progress);
}

}  // namespace

void AddBenchTrain(CLI::App* app, BenchAction* action) {
  CLI::App* verb = app->add_subcommand("train", "Training from end to end against bare mj_step plus the update");
  auto options = std::make_shared<TrainBenchOptions>();
  options->rounds = 3;
  options->seconds = 60;  // The cost of physics depends on the policy, and falls while it learns to run.
  AddBenchFlags(verb, options.get());
  AddParallelFlag(verb, "--runners", "Runner threads, or auto = one for each core", &options->runners);
  verb->add_option("--iterations", options->iterations,
                   "Measured iterations of each run, besides the first two and the last; default: about --seconds")
      ->check(CLI::Range(1, 1000000));
  verb->add_option("--limit", options->limit,
                   "Actions of bare mj_step: random, or policy = what the policies of such a run do, trained first")
      ->check(OneOf({"random", "policy"}))
      ->capture_default_str();
  verb->footer("Example:\n  skein bench train --env HalfCheetah-v5 --set sync.mode=overlapped --json train.json");
  verb->callback([options, action] {
    *action = [options](const ShutdownSignal& shutdown) { return RunTrainBench(*options, shutdown); };
  });
}

}  // namespace skein
