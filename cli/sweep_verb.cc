// SPDX-License-Identifier: Apache-2.0
// skein sweep: trains many configurations and tells which is the best.
#include <iostream>
#include <memory>
#include <string>

#include "CLI/CLI.hpp"
#include "base/command/arguments.h"
#include "base/process/diverted_output.h"
#include "base/process/subprocess.h"
#include "cli/session_result.h"
#include "cli/verbs.h"
#include "sweep/sweep_session.h"

namespace skein {
namespace {

struct SweepFlags {
  SweepOptions options;
  bool json = false;
};

int Sweep(const SweepFlags& flags) {
  SweepOptions options = flags.options;
  options.program_folder = ProgramFolder();
  if (!flags.json) return RunSweep(options, nullptr);
  std::string json;
  int code = 0;
  {
    const DivertedOutput diverted;
    code = RunSweep(options, &json);
  }
  std::cout << json << std::endl;
  return code;
}

}  // namespace

void AddSweep(CLI::App* app, Action* action) {
  CLI::App* verb = app->add_subcommand("sweep", "Train many configurations and find the best one");
  auto flags = std::make_shared<SweepFlags>();
  SweepOptions* const options = &flags->options;
  verb->add_option("--space", options->space_path, "What is varied and how, YAML (docs/sweeps.md)")
      ->type_name("FILE")
      ->required();
  verb->add_option("--config", options->config_path, "Base configuration, YAML")->type_name("FILE");
  verb->add_option("--env", options->env_id, "Environment; alone it takes its recipe as the base configuration");
  verb->add_option("--set", options->overrides, "Any setting of the base as a.b=value; may be repeated")
      ->allow_extra_args(false)
      ->type_name("KEY=VALUE");
  verb->add_option("--steps", options->steps, "Env steps of a whole training, e.g. 1e6")->transform(WholeNumber(1));
  verb->add_option("--name", options->name, "Name of the sweep and of its folder; default: the space file's");
  verb->add_option("--runs-dir", options->runs_dir, "Where the sweep's folder is")->capture_default_str();
  verb->add_option("--resume", options->resume, "auto goes on where there is a journal, never starts over")
      ->check(OneOf({"auto", "must", "never"}))
      ->capture_default_str();
  verb->add_option("--slots", options->slots,
                   "Trainings at a time here, or auto = one a core; in a Slurm job one for each of its tasks; 0 = "
                   "workers' alone")
      ->capture_default_str();
  verb->add_option("--launcher", options->launcher,
                   "Words before the command of each training, or none; auto = srun in a Slurm job, else none")
      ->capture_default_str();
  verb->add_option("--metrics-listen", options->metrics_listen,
                   "Address of the page and of /metrics, e.g. 127.0.0.1:9100; port 0 takes a free one")
      ->type_name("ADDRESS");
  verb->add_option("--device", options->device, "Where learners compute: auto, cpu, cuda or cuda:N")
      ->type_name("DEVICE");
  verb->add_flag("--json", flags->json, "Print one JSON object at the end; progress goes to standard error");
  verb->footer(
      "The same command goes on after a crash or a stop. Optuna reads runs/NAME/journal.log.\n"
      "Example:\n  skein sweep --config configs/cartpole_ppo.yaml --steps 50e3 --space "
      "configs/sweeps/cartpole_grid.yaml");
  verb->callback([flags, action] { *action = [flags] { return Sweep(*flags); }; });
}

}  // namespace skein
