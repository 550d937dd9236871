// SPDX-License-Identifier: Apache-2.0
// skein bench acting: a policy of ours against the same network in plain LibTorch, on one thread each.
#include <memory>
#include <string>
#include <vector>

#include "CLI/CLI.hpp"
#include "absl/strings/str_cat.h"
#include "base/number/philox.h"
#include "bench/measure_rate.h"
#include "bench/torch_forward.h"
#include "bench/verb.h"
#include "bench/verbs.h"
#include "env/env_config.h"
#include "env/registry.h"
#include "policy/snapshot.h"

namespace skein {
namespace {

constexpr char kRate[] = "rows_per_second";

struct ActingBenchOptions : BenchOptions {
  int64_t batch = 16;
};

absl::Status RunActingBench(const ActingBenchOptions& options, const ShutdownSignal& shutdown) {
  const auto config = ReadBenchConfig(options);
  if (!config.ok()) return config.status();
  if (absl::Status s = CheckWritable(options.json_path); !s.ok()) return s;
  const auto spec = FindEnvSpec(config->env().id(), MakeEnvOptions(config->env()));
  if (!spec.ok()) return spec.status();
  const auto limit = TorchForward::Make(*config, *spec);
  if (!limit.ok()) return limit.status();
  const auto policy = ReadSnapshot((*limit)->Snapshot(), MakePolicySpec(config->model(), *spec));
  if (!policy.ok()) return policy.status();

  const int64_t rows = options.batch;
  std::vector<float> obs(static_cast<size_t>(rows * spec->obs_size));
  std::vector<float> head(static_cast<size_t>(rows * (*policy)->spec().head_size()));
  std::vector<float> state(static_cast<size_t>(rows * (*policy)->spec().state_size()));
  RandomStream random(config->seed(), RandomPurpose::kInit, 0, 0);
  for (float& value : obs) value = static_cast<float>(random.Normal());

  VerbRun run;
  run.heading = absl::StrCat(spec->id, ": acting for ", rows, " rows at a time, one thread, rows/s");
  run.config = DescribeConfig("acting", options, *config);
  run.config["batch"] = rows;
  run.contest.rate = kRate;
  run.contest.ours_title = "Policy";
  run.contest.limit_title = "LibTorch";
  const Job act = [&]() -> int64_t {
    (*policy)->Act(obs.data(), state.data(), rows, head.data(), state.data());
    return rows;
  };
  const Job act_with_torch = [&]() -> int64_t {
    (*limit)->Act(obs.data(), rows, head.data());
    return rows;
  };
  run.contest.ours = [&](absl::Duration duration) -> absl::StatusOr<Json> {
    return Json{{kRate, MeasureRate({act}, duration)}};
  };
  run.contest.limit = [&](absl::Duration duration) -> absl::StatusOr<Json> {
    return Json{{absl::StrCat("limit_", kRate), MeasureRate({act_with_torch}, duration)}};
  };
  ProgressLine progress = StderrProgress();
  return MeasureAndReport(run, options, shutdown, &progress);
}

}  // namespace

void AddBenchActing(CLI::App* app, BenchAction* action) {
  CLI::App* verb = app->add_subcommand("acting", "A policy's forward pass against LibTorch's, on one thread");
  auto options = std::make_shared<ActingBenchOptions>();
  auto memory = std::make_shared<std::string>();
  AddBenchFlags(verb, options.get());
  verb->add_option("--batch", options->batch, "Rows of a call: environments x agents")
      ->check(CLI::Range(1, 65536))
      ->capture_default_str();
  verb->add_option("--memory", *memory, "none, gru or lstm; model.memory");
  verb->footer(
      "Examples:\n"
      "  skein bench acting --env HalfCheetah-v5 --batch 64 --set \"model.hidden=[256, 256]\"\n"
      "  skein bench acting --env HalfCheetah-v5 --batch 64 --memory lstm");
  verb->callback([options, memory, action] {
    if (!memory->empty()) {
      auto& overrides = options->overrides;
      overrides.insert(overrides.begin(), absl::StrCat("model.memory=", nlohmann::json(*memory).dump(-1, ' ', true)));
    }
    *action = [options](const ShutdownSignal& shutdown) { return RunActingBench(*options, shutdown); };
  });
}

}  // namespace skein
