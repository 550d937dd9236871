// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "env/env.h"
#include "env/transform/transform.h"
#include "eval/checkpoint_policy.h"
#include "policy/normalization.h"
#include "policy/policy_spec.h"

// A policy for use without Skein, with every step from an observation of the environment to an action in it.
//   observation -> transforms -> normaliser -> memory -> hidden layers -> head -> action -> clipping, transforms
namespace skein {

struct PortablePolicy {
  EnvSpec env;   // Without transforms.
  EnvSpec spec;  // With them.
  std::vector<Transform> transforms;
  PolicySpec network;
  std::vector<std::vector<float>> parameters;  // As PolicyParameters(network).
  Normalization normalization;
  std::string env_id, digest;
  std::vector<std::pair<std::string, std::string>> metadata;  // For people and programs; the same for each format.

  // Floats of the state between two steps, of one agent. For each transform `stack` its observations but the newest,
  // the oldest first; then what the memory carries. At the start of an episode `reset` takes its place.
  int64_t state_size() const;
  // The standard deviation of each real of an action.
  std::vector<float> Std() const;
  const std::vector<float>& Parameter(const std::string& name) const;  // REQUIRES: PolicyParameters has it.
};

PortablePolicy MakePortable(const CheckpointPolicy& checkpoint);

// Files with the whole policy. Equal policies give equal bytes. docs/export.md describes them.
std::string WriteOnnx(const PortablePolicy& policy);
std::string WriteSafetensors(const PortablePolicy& policy);
// A header of C99. `name` begins the names of its functions. REQUIRES: it is an identifier.
std::string WriteC(const PortablePolicy& policy, const std::string& name);

}  // namespace skein
