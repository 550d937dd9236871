// SPDX-License-Identifier: Apache-2.0
#include "eval/evaluation.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/config/config.h"
#include "base/config/transform_rules.h"
#include "env/env_config.h"
#include "env/registry.h"
#include "env/vector_env.h"
#include "eval/checkpoint_policy.h"
#include "eval/episode_policy.h"
#include "eval/evaluation_episodes.h"
#include "eval/recorded_episode.h"
#include "eval/render_episode.h"
#include "policy/policy.h"

namespace skein {
namespace {

class CheckpointActor : public EpisodePolicy {
 public:
  CheckpointActor(std::shared_ptr<const Policy> policy, EnvSpec spec)
      : policy_(std::move(policy)), spec_(std::move(spec)) {}

  // Only the first episode of each environment counts, so no policy state needs a reset.
  void Begin(uint32_t, uint32_t count) override {
    rows_ = int64_t{count} * spec_.num_agents;
    state_.assign(static_cast<size_t>(rows_ * policy_->spec().state_size()), 0);
    head_.resize(static_cast<size_t>(rows_ * policy_->spec().head_size()));
  }

  void Act(const float* obs, float* action) override {
    policy_->Act(obs, state_.data(), rows_, head_.data(), state_.data());
    if (!spec_.discrete) {
      std::copy(head_.begin(), head_.end(), action);
      return;
    }
    const int64_t choices = policy_->spec().head_size();
    for (auto row = head_.begin(); row != head_.end(); row += choices) {
      *action++ = static_cast<float>(std::max_element(row, row + choices) - row);
    }
  }

 private:
  const std::shared_ptr<const Policy> policy_;
  const EnvSpec spec_;
  int64_t rows_ = 0;
  std::vector<float> state_, head_;
};

absl::Status CheckCombination(const EvaluationOptions& options) {
  if (options.episodes < 1) return absl::InvalidArgumentError("--episodes: got 0, want at least 1");
  if (options.checkpoint.empty() == options.baseline.empty()) {
    return absl::InvalidArgumentError(options.checkpoint.empty()
                                          ? "nothing to evaluate: want --checkpoint or --baseline"
                                          : "--checkpoint and --baseline: want one of them, got both");
  }
  if (!options.baseline.empty() && options.env_id.empty()) {
    return absl::InvalidArgumentError(absl::StrCat("--baseline ", options.baseline, ": want --env"));
  }
  for (const std::string& assignment : options.overrides) {
    if (absl::StartsWith(assignment, "env.") && !absl::StartsWith(assignment, "env.id=")) continue;
    if (absl::StartsWith(assignment, "rollout.step_timeout_seconds=")) continue;
    return absl::InvalidArgumentError(absl::StrCat("--set ", assignment,
                                                   ": only settings of env and rollout.step_timeout_seconds can be "
                                                   "given, and not which environment it is"));
  }
  if (!options.render_path.empty() && options.render_episode >= options.episodes) {
    return absl::InvalidArgumentError(absl::StrCat("--render-episode: got ", options.render_episode, ", want under ",
                                                   options.episodes, " (--episodes)"));
  }
  return absl::OkStatus();
}

VectorEnv::Options MakeVectorEnvOptions(const std::string& env_id, const v1::RunConfig& config, uint64_t seed) {
  return {.env_id = env_id,
          .seed = seed,
          .max_episode_steps = static_cast<int>(config.env().max_episode_steps()),
          .reset_purpose = RandomPurpose::kEvaluation,
          .env = MakeEnvOptions(config)};
}

// The policy and its environment. Also fills in what `result` says of a checkpoint.
struct Match {
  VectorEnv::Options env;
  EnvSpec spec;
  std::unique_ptr<EpisodePolicy> policy;
};

// The columns that each `hide` leaves of an observation.
absl::StatusOr<std::vector<std::vector<int>>> ColumnsLeft(const std::string& env_id, const EnvOptions& options) {
  const auto transforms = FindTransforms(env_id, options);
  if (!transforms.ok()) return transforms.status();
  std::vector<std::vector<int>> columns;
  for (const Transform& transform : *transforms) {
    if (transform.options.kind == TransformOptions::Kind::kHide) columns.push_back(transform.kept);
  }
  return columns;
}

absl::StatusOr<Match> MatchOfCheckpoint(const EvaluationOptions& options, EvaluationResult* result) {
  const auto loaded = LoadCheckpointPolicy(options.checkpoint, /*any_model=*/true);  // Compared below, after --set.
  if (!loaded.ok()) return loaded.status();
  if (!options.env_id.empty() && options.env_id != loaded->spec.id) {
    return absl::InvalidArgumentError(
        absl::StrCat("--env: got ", options.env_id, ", but ", loaded->path, " is of ", loaded->spec.id));
  }
  v1::RunConfig config = loaded->config;
  for (const std::string& assignment : options.overrides) {
    if (absl::Status status = ApplyOverride(assignment, &config); !status.ok()) return status;
  }
  if (absl::Status status = CheckTransforms(config); !status.ok()) return status;
  Match match;
  match.env = MakeVectorEnvOptions(loaded->spec.id, config, options.seed);
  const auto spec = FindEnvSpec(loaded->spec.id, match.env.env);
  if (!spec.ok()) return spec.status();
  if (spec->obs_size != loaded->spec.obs_size || spec->action_size != loaded->spec.action_size) {
    return absl::InvalidArgumentError(absl::StrCat(
        "--set: with these settings ", spec->id, " has ", spec->obs_size, " observations and ", spec->action_size,
        " actions; the policy was trained with ", loaded->spec.obs_size, " and ", loaded->spec.action_size));
  }
  const auto shown = ColumnsLeft(spec->id, match.env.env);
  if (!shown.ok()) return shown.status();
  // Of the same environment: the run's own may no longer be there.
  *config.mutable_env()->mutable_hide() = loaded->config.env().hide();
  *config.mutable_env()->mutable_transforms() = loaded->config.env().transforms();
  const auto learned = ColumnsLeft(spec->id, MakeEnvOptions(config.env()));
  if (!learned.ok()) return learned.status();
  if (*shown != *learned) {
    return absl::InvalidArgumentError(
        "--set: with these settings the policy sees other columns of an observation than in its training; leave "
        "env.hide and the hide of env.transforms as they are");
  }
  match.spec = *spec;
  match.policy = std::make_unique<CheckpointActor>(loaded->policy, match.spec);
  result->policy = "checkpoint";
  result->checkpoint = loaded->path;
  result->digest = loaded->digest;
  result->env_steps = loaded->env_steps;
  result->warnings = loaded->warnings;
  return match;
}

absl::StatusOr<Match> MatchOfBaseline(const EvaluationOptions& options, EvaluationResult* result) {
  const auto config = ReadRunConfig("", options.overrides);
  if (!config.ok()) return config.status();
  if (absl::Status status = CheckTransforms(*config); !status.ok()) return status;
  Match match;
  match.env = MakeVectorEnvOptions(options.env_id, *config, options.seed);
  const auto spec = FindEnvSpec(options.env_id, match.env.env);
  if (!spec.ok()) return spec.status();
  match.spec = *spec;
  auto policy = MakeBaseline(options.baseline, *spec, match.env.env, options.seed);
  if (!policy.ok()) return policy.status();
  match.policy = *std::move(policy);
  result->policy = options.baseline;
  return match;
}

}  // namespace

absl::StatusOr<EvaluationResult> Evaluate(const EvaluationOptions& options) {
  if (absl::Status status = CheckCombination(options); !status.ok()) return status;
  EvaluationResult result;
  const auto match = options.baseline.empty() ? MatchOfCheckpoint(options, &result) : MatchOfBaseline(options, &result);
  if (!match.ok()) return match.status();
  result.env_id = match->env.env_id;
  result.seed = options.seed;
  result.mujoco_version = MujocoVersion();
  if (options.unclipped_return && !FindEnvExtras(result.env_id).motors_clip) {
    return absl::InvalidArgumentError(
        absl::StrCat("--unclipped-return: only MuJoCo environments have it, ", result.env_id, " does not"));
  }
  const bool render = !options.render_path.empty();
  if (render) {
    if (absl::Status status = CheckRender(options.render_path, result.env_id); !status.ok()) return status;
  }
  RecordedEpisode recording = {.spec = match->spec,
                               .options = match->env.env,
                               .policy = result.policy,
                               .seed = options.seed,
                               .episode = options.render_episode};
  if (absl::Status status = RunEpisodes(*match->policy, match->env, options.episodes, render ? &recording : nullptr,
                                        &result, options.on_progress);
      !status.ok()) {
    return status;
  }
  if (result.returns.empty()) {
    return absl::DataLossError(absl::StrCat("all ", result.failed_episodes, " episodes failed", WhyEpisodesFail()));
  }
  if (render) {
    if (absl::Status status = RenderEpisode(options.render_path, recording); !status.ok()) return status;
  }
  if (options.unclipped_return) {  // The motors clip the same actions: the same episodes, scored otherwise.
    VectorEnv::Options unclipped = match->env;
    unclipped.env.mujoco.clip_actions = false;
    EvaluationResult scored;
    absl::Status status =
        RunEpisodes(*match->policy, unclipped, options.episodes, nullptr, &scored, options.on_progress);
    if (!status.ok()) return status;
    result.unclipped_returns = std::move(scored.returns);
    for (auto& [name, values] : scored.metrics) {
      if (values != result.metrics[name]) result.unclipped_metrics[name] = std::move(values);
    }
  }
  return result;
}

}  // namespace skein
