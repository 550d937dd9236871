// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "env/env.h"
#include "env/transform/transform_options.h"

// Transforms around any environment.   Env -> transforms[0] -> transforms[1] ... -> VectorEnv
// Episode metrics stay those of the environment, and so do global states, but for what is hidden from the policy alone.
// A saved state begins with that of the environment.
namespace skein {

// The policy's side of kSquash has the bounds +-kMaxSquashed, because bounds are finite; tanh of them is +-1 in
// float32.
inline constexpr float kMaxSquashed = 10;

// A transform of a particular environment.
struct Transform {
  TransformOptions options;
  EnvSpec inner, outer;   // Of what it is around, and with it.
  std::vector<int> kept;  // kHide: columns of inner that outer has, in ascending order.
  // kHide, where the critic sees them: the others, in ascending order. Outer's global state is inner's, then these of
  // each agent. Else empty.
  std::vector<int> shown;
};

// In place, what the environment gets of one agent's action [D] of the policy: `transforms` from the last to the first.
void TransformAction(const std::vector<Transform>& transforms, float* action);

// What `transforms` make of an environment. InvalidArgument: one of them does not fit; names its setting.
absl::StatusOr<std::vector<Transform>> ResolveTransforms(const EnvSpec& spec,
                                                         const std::vector<TransformOptions>& transforms);
// The spec after all of them. Errors as ResolveTransforms.
absl::StatusOr<EnvSpec> TransformedSpec(const EnvSpec& spec, const std::vector<TransformOptions>& transforms);

// Puts the transforms around each of `envs`, which were made together and of which there is at least one. Errors as
// ResolveTransforms; `envs` are then as they were.
absl::Status WrapInTransforms(const std::vector<TransformOptions>& transforms, std::vector<std::unique_ptr<Env>>* envs);

}  // namespace skein
