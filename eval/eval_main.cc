// SPDX-License-Identifier: Apache-2.0
// skein-eval: what `skein eval` runs; apart from skein because it needs MuJoCo.
#include <cstdio>
#include <iostream>

#include "CLI/CLI.hpp"
#include "base/command/arguments.h"
#include "base/net/credential_flags.h"
#include "base/process/clock.h"
#include "base/process/exit_code.h"
#include "base/process/message_text.h"
#include "base/process/shutdown.h"
#include "base/telemetry/format_seconds.h"
#include "base/telemetry/log.h"
#include "env/registry.h"
#include "eval/evaluation.h"

namespace {

void Print(const skein::EvaluationResult& result, const skein::EvaluationOptions& options, bool json) {
  std::cout << (json ? ToJson(result) : FormatEvaluation(result)) << std::endl;
  if (json) return;  // One object is all.
  if (result.checkpoint.empty()) {
    std::cout << "baseline " << result.policy << std::endl;
  } else {
    std::cout << "checkpoint " << skein::Escaped(result.checkpoint) << " (digest " << result.digest << ")" << std::endl;
  }
  if (options.render_path.empty()) return;
  std::cout << "drew episode " << options.render_episode << " into " << skein::Escaped(options.render_path)
            << std::endl;
}

struct Command {
  skein::EvaluationOptions options;
  skein::CredentialFiles credentials;  // For environments behind grpc://.
  bool json = false, exit_with_parent = false;
};

void AddFlags(CLI::App* app, Command* command) {
  app->add_option("--checkpoint", command->options.checkpoint,
                  "Checkpoint folder, or a run's folder for its newest one");
  app->add_option("--baseline", command->options.baseline,
                  "random, or greedy (UavNavigate-v0): instead of a checkpoint");
  app->add_option("--env", command->options.env_id, "Environment of a baseline");
  app->add_option("--set", command->options.overrides,
                  "Setting of the environment, env.a.b=value, or rollout.step_timeout_seconds=S, in place of the "
                  "checkpoint's; may be repeated")
      ->allow_extra_args(false);
  app->add_option("--episodes", command->options.episodes, "Episodes to run")
      ->check(CLI::Range(1, 1000000))
      ->capture_default_str();
  app->add_option("--seed", command->options.seed, "Seed of the episodes' starting states")
      ->transform(skein::WholeNumber())
      ->capture_default_str();
  app->add_flag("--json", command->json, "Print one JSON object");
  app->add_flag("--unclipped-return", command->options.unclipped_return,
                "MuJoCo: also report Gymnasium's return, with the control cost of actions before they are clipped");
  CLI::Option* const render =
      app->add_option("--render", command->options.render_path,
                      "Draw one episode: FILE.mp4 or FILE.png (UAV and MuJoCo's environments), or FILE.svg (UAV)");
  app->add_option("--render-episode", command->options.render_episode, "Which one, from 0")
      ->transform(skein::WholeNumber())
      ->needs(render)
      ->capture_default_str();
  skein::AddCredentialFlags(app, &command->credentials);
  app->add_flag("--exit-with-parent", command->exit_with_parent, "Stop when the parent process ends");
  app->footer(
      "Example:\n  skein eval --checkpoint runs/HalfCheetah-v5-s1 --episodes 10\n"
      "  skein eval --env UavNavigate-v0 --baseline greedy --episodes 200 --set env.uav.uavs=20 --render map.svg");
}

}  // namespace

int main(int argc, char** argv) {
  Command command;
  CLI::App app("Evaluates a checkpoint's policy with deterministic actions, or a baseline.", "skein eval");
  AddFlags(&app, &command);
  if (const auto code = skein::ParseArguments(app, argc, argv, {{"MuJoCo", skein::MujocoVersion()}})) return *code;

  skein::InitLog("skein-eval");  // Standard output is the result's alone.
  if (command.exit_with_parent) skein::ExitWithParent();
  if (const absl::Status status = skein::UseCredentials(command.credentials); !status.ok()) {
    return skein::ReportAndExitCode("skein eval", status);
  }
  command.options.on_progress = [begin = skein::MonotonicNow()](uint32_t ended, uint32_t episodes, int64_t env_steps) {
    const double seconds = absl::ToDoubleSeconds(skein::MonotonicNow() - begin);
    std::cerr << "skein eval: " << ended << " of " << episodes << " episodes have ended after " << env_steps
              << " env steps, ETA " << skein::FormatSeconds(seconds * (episodes - ended) / ended) << std::endl;
  };
  const auto result = skein::Evaluate(command.options);
  if (!result.ok()) return skein::ReportAndExitCode("skein eval", result.status());
  for (const std::string& warning : result->warnings) std::cerr << "skein eval: warning: " << warning << std::endl;
  if (const std::string failed = FailedEpisodesText(*result); !failed.empty()) {
    std::cerr << "skein eval: warning: " << failed << std::endl;
  }
  Print(*result, command.options, command.json);
  return skein::FinishOutput("skein eval", skein::kExitOk);
}
