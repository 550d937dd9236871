// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "env/env.h"

namespace skein {

struct EnvInfo {
  std::string id;
  std::string summary;  // One line for `skein envs`.
  EnvSpec spec;
};

// All registered environments, ordered by id.
std::vector<EnvInfo> ListEnvs();

// A new environment. InvalidArgument: unknown id (names the nearest one and `skein envs`). Internal: MuJoCo
// refuses the environment's model.
absl::StatusOr<std::unique_ptr<Env>> MakeEnv(const std::string& id);

// Version of the linked MuJoCo library, e.g. "2.2.2".
std::string MujocoVersion();

}  // namespace skein
