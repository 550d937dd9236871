// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "env/env.h"
#include "env/synthetic/latency.h"

namespace skein {

struct EnvInfo {
  std::string id;
  std::string summary;  // One line for `skein envs`.
  EnvSpec spec;
};

// All registered environments, ordered by id.
std::vector<EnvInfo> ListEnvs();

// What it looks like from outside. InvalidArgument: unknown id, as MakeEnv.
absl::StatusOr<EnvSpec> FindEnvSpec(const std::string& id);

// A new environment; `latency` is for Latency-v0. InvalidArgument: unknown id (names the nearest one and `skein envs`),
// or as MakeLatency. Internal: MuJoCo refuses the environment's model. FailedPrecondition: built without MuJoCo.
absl::StatusOr<std::unique_ptr<Env>> MakeEnv(const std::string& id, const LatencyOptions& latency = {});

// Version of the linked MuJoCo library, e.g. "2.2.2"; "none" in a build without.
std::string MujocoVersion();

}  // namespace skein
