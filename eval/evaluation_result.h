// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace skein {

// The result of an evaluation: episodes with deterministic actions of a checkpoint's policy, or episodes of a baseline.
struct EvaluationResult {
  std::string env_id;
  std::string policy = "checkpoint";  // Or "random", "greedy"; then checkpoint and digest are empty.
  std::string checkpoint;             // The checkpoint's folder.
  std::string digest;
  uint64_t env_steps = 0;  // Trained when the checkpoint was written.
  uint64_t seed = 0;
  std::string mujoco_version;
  uint32_t failed_episodes = 0;  // They failed in a step and are left out of all that follows.
  std::vector<double> returns;   // One per episode, in order.
  // The returns with the control cost of actions before they are clipped, as Gymnasium has it; empty if not asked for.
  std::vector<double> unclipped_returns;
  std::vector<int64_t> lengths;                        // Env steps of each.
  std::map<std::string, std::vector<double>> metrics;  // Episode metrics by name; one per episode.
  // Those metrics that differ where actions are not clipped for the reward, of the episodes of unclipped_returns.
  std::map<std::string, std::vector<double>> unclipped_metrics;
  std::vector<std::string> warnings;  // Newer checkpoints that were skipped, and why.
};

// Mean, population standard deviation and range. All zero if `values` is empty.
struct Spread {
  double mean = 0, deviation = 0, min = 0, max = 0;
};
Spread SpreadOf(const std::vector<double>& values);

// One JSON object on one line: env_id, policy, checkpoint, digest, env_steps, seed, mujoco_version, episodes,
// failed_episodes, return_mean, return_std, return_min, return_max, length_mean, metrics_mean, returns,
// unclipped_returns, lengths, metrics, warnings; with unclipped_returns also unclipped_return_mean,
// unclipped_return_std, unclipped_metrics and unclipped_metrics_mean.
std::string ToJson(const EvaluationResult& result);
// Why episodes may have failed, to follow a sentence that says so.
std::string WhyEpisodesFail();
// What to warn of where episodes failed; empty if none did.
std::string FailedEpisodesText(const EvaluationResult& result);
// Parses what ToJson writes. DataLoss: not such an object.
absl::StatusOr<EvaluationResult> EvaluationFromJson(const std::string& text);

// One line of text: "return 4321.0 +- 12.3 (min 4300.1, max 4340.9), length 1000, 10 episodes, HalfCheetah-v5, MuJoCo
// 2.2.2". The means of episode metrics, if any, come before the number of episodes: "success_rate 0.93". With
// unclipped_returns these come after the range: "unclipped 4123.0 +- 14.5, unclipped reward_ctrl -612.300".
std::string FormatEvaluation(const EvaluationResult& result);

}  // namespace skein
