// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "env/env.h"
#include "env/env_options.h"
#include "env/transform/transform.h"

// Environments by id: which there are, their sizes, and how to make one.
//   id, EnvOptions -> MakeEnv -> Env
// All functions are thread-safe. Errors that name an unknown id also name the nearest known one.
namespace skein {

struct EnvInfo {
  std::string id;
  std::string summary;  // One line for `skein envs`.
  EnvSpec spec;
  bool tensor_form = false;  // Has a tensor form (env/tensor/tensor_env.h), which sync.mode on_device needs.
};

// What a camera sees of bodies (env/mujoco/offscreen_renderer.h), or a map of a team seen from above.
enum class EnvDrawing { kNone, kScene, kMap };

// What can be done with an environment besides playing it.
struct EnvExtras {
  EnvDrawing drawing = EnvDrawing::kNone;  // Of an episode, from its saved states.
  bool physics = false;                    // MuJoCo's: what steps it is mj_step, of which there is a bare loop.
  bool motors_clip = false;  // EnvOptions::mujoco.clip_actions decides only which actions the reward is of.
};

// Actions for observations: obs [agents, O]; action [agents, D], or [agents, 1] if discrete, written.
using ScriptedPolicy = std::function<void(int agents, const float* obs, float* action)>;

// All registered environments, ordered by id.
std::vector<EnvInfo> ListEnvs();

// The spec of an environment with its transforms. InvalidArgument: unknown id or options, as MakeEnv.
absl::StatusOr<EnvSpec> FindEnvSpec(const std::string& id, const EnvOptions& options = {});

// The transforms in `options` as they are of this environment. Errors as FindEnvSpec.
absl::StatusOr<std::vector<Transform>> FindTransforms(const std::string& id, const EnvOptions& options);

// Digest of the user's model, for env.mujoco.xml_digest; empty: it has none. Errors as FindEnvSpec.
absl::StatusOr<std::string> FindModelDigest(const std::string& id, const EnvOptions& options);

// OK if the environment has a tensor form. InvalidArgument: it has none (the message names those that have), or unknown
// id, as MakeEnv.
absl::Status CheckTensorForm(const std::string& id);

// Nothing, if no environment of this id is registered.
EnvExtras FindEnvExtras(const std::string& id);

// The environment's greedy policy, written by hand for comparisons; it reads observations without transforms.
// InvalidArgument: it has none (the message names those that have), or its options are refused.
absl::StatusOr<ScriptedPolicy> MakeGreedyPolicy(const std::string& id, const EnvOptions& options);

// A new environment with its transforms. InvalidArgument: unknown id (names the nearest one and `skein envs`), options
// that the environment refuses, or transforms that do not fit it. Internal: MuJoCo refuses the environment's model.
// FailedPrecondition: built without MuJoCo.
absl::StatusOr<std::unique_ptr<Env>> MakeEnv(const std::string& id, const EnvOptions& options = {});

// `count` new environments. Errors as MakeEnv. REQUIRES: count >= 1.
absl::StatusOr<std::vector<std::unique_ptr<Env>>> MakeEnvs(const std::string& id, int count,
                                                           const EnvOptions& options = {});

// Version of the linked MuJoCo library, e.g. "2.2.2"; "none" in a build without.
std::string MujocoVersion();

}  // namespace skein
