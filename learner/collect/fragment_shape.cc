// SPDX-License-Identifier: Apache-2.0
#include "learner/collect/fragment_shape.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "base/config/algorithm_rules.h"
#include "base/config/direction_rules.h"
#include "base/net/grpc_transport.h"
#include "env/env_config.h"
#include "env/registry.h"
#include "env/searchable.h"
#include "env/vector_env.h"
#include "policy/policy_spec.h"
#include "trajectory/env_spec_info.h"
#include "trajectory/frame.h"
#include "trajectory/schema.h"

namespace skein {
namespace {

constexpr uint32_t kAsyncSteps = 32;

// Upper bound of a frame's size, were every step the end of an episode.
int64_t FragmentBytes(const FragmentShape& shape) {
  const Schema schema = MakeSchema(shape);
  const int64_t ends = shape.steps * shape.group_envs;
  int64_t bytes = static_cast<int64_t>(kMaxHeaderBytes);
  for (const Field& field : schema.fields) {
    bytes += AlignField(schema.WireBytes(field, {.truncations = ends, .episodes = ends}));
  }
  return bytes;
}

// The fragment's steps if message size were not limited.
int64_t FragmentSteps(const v1::RunConfig& config) {
  const v1::RolloutConfig& rollout = config.rollout();
  if (rollout.fragment_steps() > 0) return rollout.fragment_steps();
  const uint32_t whole = rollout.steps_per_iteration() / rollout.num_envs();
  if (config.sync().mode() != v1::SYNC_MODE_ASYNC) return whole;
  uint32_t steps = std::min(whole, kAsyncSteps);
  while (whole % steps != 0) --steps;
  return steps;
}

absl::StatusOr<FragmentShape> DirectionShape(const v1::RunConfig& config, const EnvSpec& spec) {
  if (absl::Status s = CheckSearchable(spec, /*on_device=*/false); !s.ok()) return s;
  const v1::DirectionsConfig& directions = config.directions();
  FragmentShape shape;
  shape.steps = 1;
  shape.group_envs = config.rollout().envs_per_runner();
  const auto most = MostEpisodeSteps(config, static_cast<uint32_t>(spec.max_episode_steps));
  if (!most.ok()) return most.status();
  shape.max_episode_steps = *most;
  shape.spec = MakeEnvSpecInfo(spec);
  shape.direction_episodes = directions.num_envs();
  shape.counts_observations = config.model().normalize_observations();
  return shape;
}

}  // namespace

absl::StatusOr<FragmentShape> MakeFragmentShape(const v1::RunConfig& config) {
  auto spec = FindEnvSpec(config.env().id(), MakeEnvOptions(config.env()));
  if (!spec.ok()) return spec.status();
  if (config.env().max_episode_steps() > 0) {
    spec->max_episode_steps = static_cast<int>(config.env().max_episode_steps());
  }
  if (SearchesDirections(config)) return DirectionShape(config, *spec);
  FragmentShape shape;
  shape.steps = FragmentSteps(config);
  shape.group_envs = config.rollout().envs_per_runner();
  shape.env_state_size = VectorEnv::StateSize(*spec);
  shape.policy_state_size = MakePolicySpec(config.model(), *spec).state_size();
  shape.max_episode_steps = spec->max_episode_steps;
  shape.spec = MakeEnvSpecInfo(*spec);
  shape.algorithm_fields = AlgorithmFields(config);
  if (config.transport().trajectory_precision() == v1::PRECISION_BF16) shape.obs_dtype = v1::DATA_TYPE_BFLOAT16;
  // Within an iteration a group's fragments form one sequence, which restarted episodes would break.
  const bool whole_only = !shape.spec.relocatable() && config.sync().mode() != v1::SYNC_MODE_ASYNC;
  const int64_t whole = config.rollout().steps_per_iteration() / std::max(1u, config.rollout().num_envs());
  if (config.rollout().fragment_steps() == 0 && !whole_only) {
    while (shape.steps > 1 && (whole % shape.steps != 0 || FragmentBytes(shape) > kMaxMessageBytes)) --shape.steps;
  }
  if (whole_only && shape.steps != whole) {
    return absl::InvalidArgumentError(absl::StrCat(
        "rollout.fragment_steps: environments of ", config.env().id(), " cannot be moved, so a fragment must have all ",
        whole, " steps of an iteration, not ", shape.steps, "; leave it at 0, or set sync.mode=async"));
  }
  if (const int64_t bytes = FragmentBytes(shape); bytes > kMaxMessageBytes) {
    return absl::InvalidArgumentError(absl::StrCat(
        "rollout: one fragment of ", shape.steps, " steps x ", shape.group_envs, " environments takes ", bytes,
        " bytes, messages are limited to ", kMaxMessageBytes,
        whole_only ? "; lower rollout.envs_per_runner or rollout.steps_per_iteration, or set sync.mode=async: these "
                     "environments cannot be moved, so a fragment has all steps of an iteration"
                   : "; lower rollout.fragment_steps or rollout.envs_per_runner"));
  }
  return shape;
}

absl::Status CheckEnvState(const TicketState& state, const FragmentShape& shape) {
  if (!state.env_state) return absl::OkStatus();
  const int64_t got = state.env_state->shape_size() == 2 ? state.env_state->shape(1) : 0;
  if (got == shape.env_state_size) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat("the checkpoint is of another version of ", shape.spec.env_id(), ": a state has ", got,
                   " numbers, this version reads ", shape.env_state_size,
                   "; give the run another --name, or take its weights alone with learner.init_from"));
}

}  // namespace skein
