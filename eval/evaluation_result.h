// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace skein {

// What an evaluation found: episodes with deterministic actions of one checkpoint's policy, or those of a baseline.
struct EvaluationResult {
  std::string env_id;
  std::string policy = "checkpoint";  // Or "random", "greedy"; then checkpoint and digest are empty.
  std::string checkpoint;             // Its folder.
  std::string digest;
  uint64_t env_steps = 0;  // Trained when the checkpoint was written.
  uint64_t seed = 0;
  std::string mujoco_version;
  std::vector<double> returns;                         // One an episode, in order.
  std::vector<int64_t> lengths;                        // Env steps of each.
  std::map<std::string, std::vector<double>> metrics;  // The environment's own, by name; one an episode.
  std::vector<std::string> warnings;                   // Newer checkpoints that were skipped, and why.
};

// Mean, population standard deviation and range. All zero if `values` is empty.
struct Spread {
  double mean = 0, deviation = 0, min = 0, max = 0;
};
Spread SpreadOf(const std::vector<double>& values);

// One JSON object on one line: env_id, policy, checkpoint, digest, env_steps, seed, mujoco_version, episodes,
// return_mean, return_std, return_min, return_max, length_mean, metrics_mean, returns, lengths, metrics, warnings.
std::string ToJson(const EvaluationResult& result);
// DataLoss: not such an object.
absl::StatusOr<EvaluationResult> EvaluationFromJson(const std::string& text);

// "return 4321.0 +- 12.3 (min 4300.1, max 4340.9), length 1000, 10 episodes, HalfCheetah-v5, MuJoCo 2.2.2"; before the
// episodes the means of the environment's metrics, if it has any: "success_rate 0.93".
std::string FormatEvaluation(const EvaluationResult& result);

}  // namespace skein
