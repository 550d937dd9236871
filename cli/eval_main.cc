// SPDX-License-Identifier: Apache-2.0
// skein-eval: what `skein eval` runs; apart from skein because it needs Torch.
#include <cstdio>
#include <iostream>

#include "CLI/CLI.hpp"
#include "base/exit_code.h"
#include "cli/evaluation.h"
#include "cli/usage.h"

int main(int argc, char** argv) {
  skein::EvaluationOptions options;
  bool json = false;
  CLI::App app("Evaluates a checkpoint's policy with deterministic actions.", "skein eval");
  app.add_option("--checkpoint", options.checkpoint, "Checkpoint folder, or a run's folder for its newest one")
      ->required();
  app.add_option("--episodes", options.episodes, "Episodes to run")
      ->check(CLI::Range(1, 1000000))
      ->capture_default_str();
  app.add_option("--seed", options.seed, "Seed of the episodes' starting states")
      ->transform(skein::WholeNumber())
      ->capture_default_str();
  app.add_flag("--json", json, "Print one JSON object");
  app.footer("Example:\n  skein eval --checkpoint runs/HalfCheetah-v5-s1 --episodes 10");
  if (const auto code = skein::ParseArguments(app, argc, argv)) return *code;

  const auto result = skein::Evaluate(options);
  if (!result.ok()) return skein::ReportAndExitCode("skein eval", result.status());
  for (const std::string& warning : result->warnings) std::cerr << "skein eval: warning: " << warning << std::endl;
  std::cout << (json ? ToJson(*result) : FormatEvaluation(*result)) << std::endl;
  if (!json) std::cout << "checkpoint " << result->checkpoint << " (digest " << result->digest << ")" << std::endl;
  return skein::kExitOk;
}
