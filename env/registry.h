// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "env/env.h"
#include "env/env_options.h"

namespace skein {

struct EnvInfo {
  std::string id;
  std::string summary;  // One line for `skein envs`.
  EnvSpec spec;
  bool tensor_form = false;  // Exists as tensors too (env/tensor/tensor_env.h), which sync.mode on_device needs.
};

// All registered environments, ordered by id.
std::vector<EnvInfo> ListEnvs();

// What it looks like from outside. InvalidArgument: unknown id or options, as MakeEnv.
absl::StatusOr<EnvSpec> FindEnvSpec(const std::string& id, const EnvOptions& options = {});

// InvalidArgument: the environment has no tensor form (names those that have), or unknown id, as MakeEnv.
absl::Status CheckTensorForm(const std::string& id);

// A new environment. InvalidArgument: unknown id (names the nearest one and `skein envs`), or options that it refuses.
// Internal: MuJoCo refuses the environment's model. FailedPrecondition: built without MuJoCo.
absl::StatusOr<std::unique_ptr<Env>> MakeEnv(const std::string& id, const EnvOptions& options = {});

// `count` new ones; they may share memory, so one thread at a time uses all of them. Errors as MakeEnv.
// REQUIRES: count >= 1.
absl::StatusOr<std::vector<std::unique_ptr<Env>>> MakeEnvs(const std::string& id, int count,
                                                           const EnvOptions& options = {});

// Version of the linked MuJoCo library, e.g. "2.2.2"; "none" in a build without.
std::string MujocoVersion();

}  // namespace skein
