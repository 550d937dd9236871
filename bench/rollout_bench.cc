// SPDX-License-Identifier: Apache-2.0
// skein bench rollout: a whole actor process, sending to a learner that only receives, against bare physics.
#include <unistd.h>

#include <algorithm>
#include <memory>

#include "CLI/CLI.hpp"
#include "absl/algorithm/container.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/config/algorithm_rules.h"
#include "base/config/config.h"
#include "base/net/grpc_transport.h"
#include "base/process/file.h"
#include "bench/env_loops.h"
#include "bench/fragments.h"
#include "bench/policy_actions.h"
#include "bench/process_cpu.h"
#include "bench/receiving_learner.h"
#include "bench/temporary_folder.h"
#include "bench/verb.h"
#include "bench/verbs.h"
#include "env/env_config.h"
#include "env/registry.h"
#include "launch/child.h"
#include "launch/coordinator_addresses.h"
#include "learner/run/trainer.h"
#include "member/coordinator_client.h"
#include "policy/snapshot.h"

namespace skein {
namespace {

constexpr char kHost[] = "127.0.0.1";
constexpr absl::Duration kStart = absl::Seconds(15);
constexpr absl::Duration kStop = absl::Seconds(2);
constexpr uint32_t kRepeatedEpisodes = 8;  // Of each thread of bare physics.

struct RolloutBenchOptions : BenchOptions {
  std::string verb = "rollout";
  bool wants_search = false;
  std::string runners;
};

// Coordinator and actor as real processes, the learner here.
class ActorUnderTest {
 public:
  static absl::StatusOr<std::unique_ptr<ActorUnderTest>> Start(const v1::RunConfig& config, uint32_t runners);
  ~ActorUnderTest() {
    if (actor_ != nullptr) actor_->Stop(kStop);
    if (membership_ != nullptr) membership_->Leave().IgnoreError();
    membership_.reset();
    learner_.reset();
    if (coordinator_ != nullptr) coordinator_->Stop(kStop);
  }

  absl::StatusOr<Json> Measure(absl::Duration duration, const ShutdownSignal& shutdown);

 private:
  ActorUnderTest(const v1::RunConfig& config, uint32_t runners, TemporaryFolder folder)
      : config_(config), runners_(runners), folder_(std::move(folder)) {}
  absl::Status StartCoordinator();
  absl::Status StartLearner();
  absl::Status StartActor();

  const v1::RunConfig config_;
  const uint32_t runners_;
  const TemporaryFolder folder_;
  std::string coordinator_address_;
  std::unique_ptr<Child> coordinator_, actor_;
  std::unique_ptr<ReceivingLearner> learner_;
  std::unique_ptr<CoordinatorClient> membership_;
};

absl::StatusOr<std::unique_ptr<ActorUnderTest>> ActorUnderTest::Start(const v1::RunConfig& config, uint32_t runners) {
  auto folder = TemporaryFolder::Make();
  if (!folder.ok()) return folder.status();
  std::unique_ptr<ActorUnderTest> test(new ActorUnderTest(config, runners, *std::move(folder)));
  if (absl::Status s = test->StartCoordinator(); !s.ok()) return s;
  if (absl::Status s = test->StartLearner(); !s.ok()) return s;
  if (absl::Status s = test->StartActor(); !s.ok()) return s;
  return test;
}

absl::Status ActorUnderTest::StartCoordinator() {
  const std::string config_path = folder_.path() + "/config.yaml";
  if (absl::Status s = WriteFileSynced(config_path, ToYaml(config_)); !s.ok()) return s;
  const auto program = FindProgram(ProgramFolder(), "skein-coordinator");
  if (!program.ok()) return program.status();
  const std::string any_port = JoinHostPort(kHost, 0);
  auto child = Child::Start({.name = "coordinator",
                             .program = *program,
                             .arguments = {"--config", config_path, "--listen", any_port, "--http", any_port,
                                           "--announce-host", kHost, "--exit-with-parent"},
                             .log_path = folder_.path() + "/coordinator.log",
                             .capture_stdout = true});
  if (!child.ok()) return child.status();
  coordinator_ = *std::move(child);
  const auto line = coordinator_->process().ReadLine(kStart);
  if (!line.ok()) {
    const auto code = coordinator_->process().Wait(absl::Seconds(1));
    return code && *code != 0 ? coordinator_->ExitStatus(*code)
                              : absl::DeadlineExceededError("the coordinator does not start");
  }
  const auto addresses = ParseCoordinatorLine(*line);
  if (!addresses.ok()) return addresses.status();
  coordinator_address_ = addresses->grpc;
  return absl::OkStatus();
}

absl::Status ActorUnderTest::StartLearner() {
  const auto env = MakeEnv(config_.env().id(), MakeEnvOptions(config_.env()));
  if (!env.ok()) return env.status();
  const auto trainer = Trainer::Make(config_, (*env)->spec());
  if (!trainer.ok()) return trainer.status();
  const auto policy = (*trainer)->Snapshot(1);
  if (!policy.ok()) return policy.status();
  const auto shape = MakeFragmentShape(config_);
  if (!shape.ok()) return shape.status();
  const v1::RolloutConfig& rollout = config_.rollout();
  auto learner = ReceivingLearner::Start(
      {.shape = *shape,
       .num_envs = rollout.num_envs(),
       .fragments_per_group = rollout.steps_per_iteration() / rollout.num_envs() / static_cast<uint32_t>(shape->steps),
       .directions = config_.directions(),
       .policy = *policy});
  if (!learner.ok()) return learner.status();
  learner_ = *std::move(learner);

  CoordinatorClient::Options membership;
  membership.address = coordinator_address_;
  membership.timeout = kStart;
  membership.join.set_protocol_major(kProtocolMajor);
  membership.join.set_protocol_minor(kProtocolMinor);
  membership.join.set_role(v1::ROLE_LEARNER);
  membership.join.set_host(kHost);
  membership.join.set_pid(getpid());
  membership.join.set_data_address(JoinHostPort(kHost, learner_->port()));
  membership.fill_report = [](v1::HeartbeatRequest* request) {
    request->mutable_progress()->set_state(v1::RUN_STATE_TRAINING);
  };
  auto joined = CoordinatorClient::Join(std::move(membership));
  if (!joined.ok()) return joined.status();
  membership_ = *std::move(joined);
  learner_->Serve(membership_->membership().run_id);
  return absl::OkStatus();
}

absl::Status ActorUnderTest::StartActor() {
  const auto program = FindProgram(ProgramFolder(), "skein-actor");
  if (!program.ok()) return program.status();
  auto child = Child::Start(
      {.name = "actor",
       .program = *program,
       .arguments = {"--coordinator", coordinator_address_, "--runners", absl::StrCat(runners_), "--exit-with-parent"},
       .log_path = folder_.path() + "/actor.log"});
  if (!child.ok()) return child.status();
  actor_ = *std::move(child);
  return absl::OkStatus();
}

absl::StatusOr<Json> ActorUnderTest::Measure(absl::Duration duration, const ShutdownSignal& shutdown) {
  const auto healthy = [&]() -> absl::Status {
    if (shutdown.signalled()) return absl::CancelledError("stopped on request");
    const auto code = actor_->process().Poll();
    if (!code) return absl::OkStatus();
    return *code == 0 ? absl::InternalError("the actor has left") : actor_->ExitStatus(*code);
  };
  // The first iteration also connects, and starts what was idle.
  const auto warm = learner_->Receive([](const ReceivingLearner::Received&) { return true; }, healthy);
  if (!warm.ok()) return warm.status();
  const double own_before = OwnCpuSeconds();
  const auto threads_before = ThreadCpuSeconds(actor_->process().pid());
  const auto received =
      learner_->Receive([&](const ReceivingLearner::Received& sum) { return sum.elapsed >= duration; }, healthy);
  if (!received.ok()) return received.status();
  const double own_cpu = OwnCpuSeconds() - own_before;
  const double actor_cpu = CpuSecondsOfOthers(threads_before, ThreadCpuSeconds(actor_->process().pid()), runners_);

  const double seconds = absl::ToDoubleSeconds(received->elapsed);
  const double runner_seconds = seconds * runners_;
  const double steps = static_cast<double>(received->env_steps);
  const v1::StageSeconds& stages = received->actor_seconds;
  const double busy = stages.env_step() + stages.inference() + stages.build();
  const double waiting = std::max(0.0, runner_seconds - busy);
  Json figures = {{"env_steps_per_second", steps / seconds}};
  figures["actor_microseconds_per_env_step"] = {{"env_step", 1e6 * stages.env_step() / steps},
                                                {"inference", 1e6 * stages.inference() / steps},
                                                {"build", 1e6 * stages.build() / steps},
                                                {"waiting", 1e6 * waiting / steps}};
  figures["share_of_runner_time"] = {{"env_step", stages.env_step() / runner_seconds},
                                     {"inference", stages.inference() / runner_seconds},
                                     {"build", stages.build() / runner_seconds},
                                     {"waiting", waiting / runner_seconds},
                                     {"cpu_of_actors_other_threads", actor_cpu / runner_seconds},
                                     {"cpu_of_receiving_learner", own_cpu / runner_seconds}};
  figures["wire_serialisation_waiting_share"] = (waiting + actor_cpu + own_cpu) / runner_seconds;
  if (SearchesDirections(config_)) {
    const double pairs = static_cast<double>(received->iterations * config_.directions().num_dirs());
    const double bytes = static_cast<double>(received->bytes);
    figures["message_bytes_per_pair"] = bytes / pairs;
    const auto spec = FindEnvSpec(config_.env().id(), MakeEnvOptions(config_.env()));
    if (!spec.ok()) return spec.status();
    // A sum and a sum of squares, of 16 bytes for each number of an observation.
    const int64_t sums = config_.model().normalize_observations() ? 2 * 16 * int64_t{spec->obs_size} : 0;
    figures["message_bytes_per_pair_without_sums"] =
        (bytes - static_cast<double>(received->batches) * static_cast<double>(sums)) / pairs;
  }
  return figures;
}

// The bare physics that a runner is measured against. Episodes of a search are steps of another kind than those of
// random actions: where they have one length, the limit repeats some of them.
absl::StatusOr<std::unique_ptr<EnvLimit>> MakeLimit(const v1::RunConfig& config, uint32_t runners) {
  if (!SearchesDirections(config)) return EnvLimit::Make(config, runners);
  const auto env = MakeEnv(config.env().id(), MakeEnvOptions(config.env()));
  if (!env.ok()) return env.status();
  const auto trainer = Trainer::Make(config, (*env)->spec());
  if (!trainer.ok()) return trainer.status();
  const auto snapshot = (*trainer)->Snapshot(1);
  if (!snapshot.ok()) return snapshot.status();
  const auto policy = ReadSnapshot(**snapshot, MakePolicySpec(config.model(), (*env)->spec()));
  if (!policy.ok()) return policy.status();
  auto actions = RecordDirectionActions(**policy, config, runners, kRepeatedEpisodes);
  // Episodes of one length cannot be had of every environment.
  if (!actions.ok()) return EnvLimit::Make(config, runners);
  auto replay = EnvLimit::MakeReplay(config, *std::move(actions), kRepeatedEpisodes);
  return absl::IsNotFound(replay.status()) ? EnvLimit::Make(config, runners) : std::move(replay);
}

absl::Status RunRolloutBench(const RolloutBenchOptions& options, const ShutdownSignal& shutdown) {
  const auto plan = PlanBenchRun(options, options.runners);
  if (!plan.ok()) return plan.status();
  const v1::RunConfig& config = plan->config;
  if (options.wants_search && !SearchesDirections(config)) {
    return absl::InvalidArgumentError(absl::StrCat("the configuration's algorithm is ", AlgorithmName(config),
                                                   ", want ars or es; try skein bench rollout"));
  }
  if (plan->on_device) {
    return absl::InvalidArgumentError("sync.mode on_device has no actors; try skein bench tensor");
  }
  const uint32_t runners = plan->actor_runners.at(0);
  if (absl::Status s = CheckWritable(options.json_path); !s.ok()) return s;
  ProgressLine progress = StderrProgress();
  progress.Show("playing the episodes of the limit", -absl::Seconds(1));
  const auto limit = MakeLimit(config, runners);
  if (!limit.ok()) return limit.status();
  progress.Show("starting coordinator and actor", -absl::Seconds(1));
  const auto actor = ActorUnderTest::Start(config, runners);
  if (!actor.ok()) return actor.status();

  VerbRun run;
  run.heading =
      absl::StrCat(config.env().id(), ": an actor of ", runners, " runners x ", config.rollout().envs_per_runner(),
                   " environments against bare ", (*limit)->what(), " on ", runners, " threads, env-steps/s");
  run.config = DescribeConfig(options.verb, options, config);
  run.config["runners"] = runners;
  run.config["limit"] = (*limit)->what();
  run.contest.rate = "env_steps_per_second";
  run.contest.ours_title = "actor";
  run.contest.limit_title = "bare " + (*limit)->what();
  run.contest.ours = [&](absl::Duration duration) { return (*actor)->Measure(duration, shutdown); };
  run.contest.limit = [&](absl::Duration duration) -> absl::StatusOr<Json> {
    const double rate = (*limit)->Measure(duration);
    if (absl::Status s = (*limit)->failure(); !s.ok()) return s;
    return Json{{"limit_env_steps_per_second", rate}};
  };
  return MeasureAndReport(run, options, shutdown, &progress);
}

}  // namespace

void AddBenchArs(CLI::App* app, BenchAction* action) {
  CLI::App* verb = app->add_subcommand("ars", "A whole actor that plays directions of a search, against bare mj_step");
  auto options = std::make_shared<RolloutBenchOptions>();
  AddBenchFlags(verb, options.get());
  AddParallelFlag(verb, "--runners", "Runner threads, or auto = one for each core", &options->runners);
  verb->footer(
      "Without --config: HalfCheetah-v5 with 32 directions, 8 in a work order, and a linear policy; without the 8 if\n"
      "--set names a setting of directions.\n"
      "message_bytes_per_pair has all bytes of answers, the sums of observations included; ..._without_sums has the "
      "rest.\n"
      "Example:\n  skein bench ars --runners 2 --json ars.json");
  verb->callback([options, action] {
    *action = [options](const ShutdownSignal& shutdown) {
      RolloutBenchOptions chosen = *options;
      chosen.verb = "ars";
      chosen.wants_search = true;
      if (chosen.config_path.empty()) {
        std::vector<std::string> search = {"ars.top_dirs=0", "model.policy=linear"};
        const auto sets_directions = [](const std::string& one) { return absl::StartsWith(one, "directions."); };
        if (absl::c_none_of(chosen.overrides, sets_directions)) search.emplace_back("directions.dir_chunk=8");
        chosen.overrides.insert(chosen.overrides.begin(), search.begin(), search.end());
      }
      return RunRolloutBench(chosen, shutdown);
    };
  });
}

void AddBenchRollout(CLI::App* app, BenchAction* action) {
  CLI::App* verb = app->add_subcommand("rollout",
                                       "A whole actor, sending to a learner that only receives, against "
                                       "bare mj_step");
  auto options = std::make_shared<RolloutBenchOptions>();
  AddBenchFlags(verb, options.get());
  AddParallelFlag(verb, "--runners", "Runner threads, or auto = one for each core", &options->runners);
  verb->footer("Example:\n  skein bench rollout --env HalfCheetah-v5 --runners 2 --json rollout.json");
  verb->callback([options, action] {
    *action = [options](const ShutdownSignal& shutdown) { return RunRolloutBench(*options, shutdown); };
  });
}

}  // namespace skein
