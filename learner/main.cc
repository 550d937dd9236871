// SPDX-License-Identifier: Apache-2.0
#include <string>

#include "CLI/CLI.hpp"
#include "absl/strings/str_cat.h"
#include "base/command/arguments.h"
#include "base/net/host_port.h"
#include "base/process/exit_code.h"
#include "base/process/shutdown.h"
#include "env/registry.h"
#include "learner/network/torch_version.h"
#include "learner/ranks/rank_environment.h"
#include "learner/run/learner.h"
#include "member/member_flags.h"

namespace {

constexpr char kProgram[] = "skein-learner";

void AddFlags(CLI::App* app, skein::LearnerOptions* options, std::string* resume) {
  app->add_option("--coordinator", options->coordinator,
                  "Address of the coordinator, host:port; with standbys all of theirs, a:1,b:2")
      ->required();
  app->add_option("--run-dir", options->run_directory, "Folder of the run: checkpoints and metrics.jsonl")->required();
  app->add_option(
         "--listen", options->listen,
         "Address for trajectories and policies; port 0 takes a free one, any other is local rank 0's, and each "
         "further rank of the machine takes the next")
      ->capture_default_str();
  app->add_option("--metrics", options->metrics, "Address for /metrics; ports as above")->capture_default_str();
  app->add_option("--announce-host", options->announce_host, "Host under which actors reach this machine");
  app->add_option("--device", options->device,
                  "auto, cpu, cuda or cuda:N; default: the configuration's learner.device");
  app->add_option("--resume", *resume, "Go on from the newest checkpoint: auto, must or never")
      ->check(skein::OneOf({"auto", "must", "never"}));
  app->add_option("--stop-at-step", options->stop_at_step,
                  "Stop, with a checkpoint, once so many env steps are trained: schedules still run to total_steps")
      ->transform(skein::WholeNumber(1));
  app->add_flag("--stay", options->stay,
                "When the run is finished, wait for SIGTERM before ending: for what starts again whatever ends");
}

// Ranks of one machine are given the same address: each takes the port that is its own.
absl::Status AddToPort(uint32_t local_rank, const char* flag, std::string* address) {
  const auto parsed = skein::ParseHostPort(*address);
  if (!parsed.ok() || parsed->port == 0) return absl::OkStatus();  // Validate() says what is wrong with it.
  const uint64_t port = static_cast<uint64_t>(parsed->port) + local_rank;
  if (port > 65535) {
    return absl::InvalidArgumentError(
        absl::StrCat(flag, ": port ", parsed->port, " + local rank ", local_rank, " = ", port, ", want 65535 at most"));
  }
  *address = skein::JoinHostPort(parsed->host, static_cast<int>(port));
  return absl::OkStatus();
}

// What torchrun, Slurm or `skein train` tells this process of its place among the ranks.
absl::Status TakePlace(skein::LearnerOptions* options) {
  const auto place = skein::ReadRankEnvironment();
  if (!place.ok()) return place.status();
  options->rank = static_cast<uint32_t>(place->rank);
  options->ranks = static_cast<uint32_t>(place->size);
  options->local_rank = static_cast<uint32_t>(place->local_rank);
  if (absl::Status s = AddToPort(options->local_rank, "--listen", &options->listen); !s.ok()) return s;
  return AddToPort(options->local_rank, "--metrics", &options->metrics);
}

}  // namespace

int main(int argc, char** argv) {
  skein::ShutdownSignal shutdown;
  skein::LearnerOptions options;
  skein::MemberFlags flags;
  std::string resume = "auto";
  CLI::App app(
      "Trains the policy of a run. Usually started by `skein train` or `skein head`; or by torchrun or srun, once for "
      "each rank, with RANK, WORLD_SIZE and LOCAL_RANK or Slurm's variables.",
      kProgram);
  AddFlags(&app, &options, &resume);
  skein::AddMemberFlags(&app, &flags);
  if (const auto code = skein::ParseArguments(
          app, argc, argv, {{"MuJoCo", skein::MujocoVersion()}, {"LibTorch", skein::TorchVersion()}}))
    return *code;
  const auto timeout = skein::BeginMember(kProgram, flags);
  if (!timeout.ok()) return skein::ReportAndExitCode(kProgram, timeout.status());
  options.timeout = *timeout;
  options.resume = *skein::ParseResumeMode(resume);
  absl::Status status = TakePlace(&options);
  if (status.ok()) status = options.Validate();
  if (status.ok()) status = skein::RunLearner(options, &shutdown);
  return skein::FinishOutput(kProgram, skein::ReportAndExitCode(kProgram, status));
}
