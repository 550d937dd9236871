// SPDX-License-Identifier: Apache-2.0
// skein train and skein head.
#include <iostream>
#include <memory>

#include "CLI/CLI.hpp"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/command/arguments.h"
#include "base/net/credentials.h"
#include "base/net/host_port.h"
#include "base/process/diverted_output.h"
#include "base/process/exit_code.h"
#include "base/process/subprocess.h"
#include "cli/training_session.h"
#include "cli/verbs.h"
#include "launch/visible_gpus.h"

namespace skein {
namespace {

// What flags give, before `auto` is looked up.
struct LaunchFlags {
  LaunchOptions options;
  std::string learners = "1";
  bool json = false;
};

// `least_learners`: 0 if they may be started elsewhere.
int Launch(const LaunchFlags& flags, uint32_t least_learners, const std::string& command) {
  LaunchOptions options = flags.options;
  // With one named device there is nothing to divide among learners.
  const bool one = options.device == "cpu" || absl::StartsWith(options.device, "cuda:");
  const auto learners =
      ParseLearners(flags.learners, least_learners, flags.learners == "auto" && !one ? CountVisibleGpus() : 0);
  if (!learners.ok()) return ReportAndExitCode(command.c_str(), learners.status());
  options.learners = *learners;
  if (const absl::Status exposed = CheckExposure(JoinHostPort(options.host.bind, options.ports.coordinator));
      !exposed.ok()) {
    return ReportAndExitCode(command.c_str(), absl::InvalidArgumentError(absl::StrCat("--host: ", exposed.message())));
  }
  if (!flags.json) return RunTraining(options, command, ProgramFolder());
  SessionResult result;
  int code = kExitOk;
  {
    const DivertedOutput diverted;
    code = RunTraining(options, command, ProgramFolder(), &result);
  }
  if (!result.run_directory.empty()) std::cout << ToJson(result, code) << std::endl;
  return code;
}

void AddSharedFlags(CLI::App* verb, LaunchFlags* flags) {
  LaunchOptions* const options = &flags->options;
  verb->add_option("--env", options->env_id, "Environment; `skein envs` lists them");
  options->recipe = "auto";
  verb->add_option(
          "--recipe", options->recipe,
          "Settings to start from: auto (the environment's own, unless there is a --config), general, study, none or "
          "a YAML file")
      ->type_name("RECIPE")
      ->capture_default_str();
  verb->add_option("--config", options->config_path, "Configuration, YAML; overrides the recipe");
  verb->add_option("--steps", options->steps, "Train until this many env steps, e.g. 1e6")->transform(WholeNumber(1));
  verb->add_option("--seed", options->seed, "Key of all random numbers of the run")->transform(WholeNumber());
  verb->add_option("--name", options->name, "Name of the run and of its folder; default <env>-s<seed>");
  verb->add_option("--runs-dir", options->runs_dir, "Where run folders are")->capture_default_str();
  verb->add_option("--envs", options->num_envs, "Environments of the whole run")->transform(WholeNumber());
  verb->add_option("--envs-per-runner", options->envs_per_runner, "Environments that one runner steps together")
      ->transform(WholeNumber());
  verb->add_option("--set", options->overrides, "Any setting as a.b=value; may be repeated, comes last")
      ->allow_extra_args(false)
      ->type_name("KEY=VALUE");
  verb->add_option("--resume", options->resume, "auto goes on where there is a checkpoint, never starts over")
      ->check(OneOf({"auto", "must", "never"}))
      ->capture_default_str();
  CLI::Option* const init =
      verb->add_option("--init-from", options->init.from,
                       "Begin with the weights and normalisers of this checkpoint's or run's folder, not with new ones")
          ->type_name("DIR");
  verb->add_flag("--init-optimizer", options->init.optimizer, "And with the state of its optimizer")->needs(init);
  verb->add_option("--device", options->device,
                   "Where learners compute: auto (a GPU each, if there is one), cpu, cuda or cuda:N")
      ->type_name("DEVICE");
  verb->add_option("--callbacks", options->callbacks,
                   "Python function that makes an object which is told of each iteration and checkpoint")
      ->type_name("MODULE:MAKE");
  verb->add_option("--port", options->ports.coordinator, "Coordinator's port, 0 = a free one")
      ->check(CLI::Range(0, 65535))
      ->capture_default_str();
  verb->add_option("--http-port", options->ports.http, "Port of the status page and metrics, 0 = a free one")
      ->check(CLI::Range(0, 65535))
      ->capture_default_str();
  verb->add_option("--stop-at-step", options->session.ends_at_step,
                   "End with a checkpoint once so many env steps are trained: unlike with --steps, schedules still run "
                   "to the target")
      ->transform(WholeNumber(1));
  verb->add_flag("--wait-for-resources", options->session.waits_for_resources, "Wait while other runs have them")
      ->group("");
  verb->add_flag("--exit-with-parent", options->session.ends_with_parent, "End when the parent process does")
      ->group("");
  verb->add_flag("--no-eval", options->session.no_eval, "Do not evaluate at the end");
  verb->add_flag("--json", flags->json, "Print one JSON object at the end; progress goes to standard error");
}

}  // namespace

void AddTrain(CLI::App* app, Action* action) {
  CLI::App* verb = app->add_subcommand("train", "Train on this machine: coordinator, learner and actors");
  auto flags = std::make_shared<LaunchFlags>();
  LaunchOptions* const options = &flags->options;
  AddSharedFlags(verb, flags.get());
  verb->add_option("--learners", flags->learners, "Learner processes that share the update, or auto = one a GPU")
      ->capture_default_str();
  verb->add_option("--runners", options->runners, "Runner threads, or auto = one a core")->capture_default_str();
  verb->add_option("--actors", options->actors,
                   "Actor processes the runners are split over; one for each learner at least")
      ->check(CLI::Range(1, 4096))
      ->capture_default_str();
  verb->footer(
      "Needs an environment or a configuration. --env alone takes the environment's recipe.\n"
      "Example:\n  skein train --env HalfCheetah-v5 --seed 2 --set ppo.lr=2e-4\n  skein train --config mine.yaml");
  verb->callback([flags, action] { *action = [flags] { return Launch(*flags, 1, "skein train"); }; });
}

void AddHead(CLI::App* app, Action* action) {
  CLI::App* verb = app->add_subcommand("head", "Run coordinator and learners here; workers join from any node");
  auto flags = std::make_shared<LaunchFlags>();
  LaunchOptions* const options = &flags->options;
  options->actors = 0;
  options->ports.coordinator = 7070;
  options->ports.http = 8080;
  AddSharedFlags(verb, flags.get());
  verb->add_option(
          "--learners", flags->learners,
          "Learner processes here that share the update, auto = one a GPU, or 0 = torchrun or srun starts them")
      ->capture_default_str();
  verb->add_option("--host", options->host.bind,
                   "Address to listen on; workers on other nodes need a public one, 0.0.0.0 = all")
      ->capture_default_str();
  verb->add_option("--announce-host", options->host.announce,
                   "Name under which workers reach this node; default: --host, or its first address for 0.0.0.0");
  verb->add_option("--data-port", options->ports.data,
                   "Port where the learner takes trajectories, the next one for each further learner; workers must "
                   "reach them, 0 = free ones")
      ->check(CLI::Range(0, 65535))
      ->capture_default_str();
  verb->footer(
      "Without --envs the run has the environments of two runners, in mode overlapped two env groups for each.\n"
      "Example:\n  skein certs init credentials\n"
      "  skein head --config configs/cartpole_ppo.yaml --host 0.0.0.0 --token-file credentials/token\n"
      "  skein worker --address HEAD:7070 --token-file credentials/token          (on every node that helps)");
  verb->callback([flags, action] { *action = [flags] { return Launch(*flags, 0, "skein head"); }; });
}

}  // namespace skein
