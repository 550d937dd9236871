// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "env/env.h"
#include "env/external/world.h"

namespace skein {

// Environments of a library with the interface of include/skein/env_plugin.h. A library is loaded once and stays.
// A step that fails is a reward that is not finite, and one line of the log; a reset that fails throws.
// NotFound: no such file. FailedPrecondition: it cannot be loaded, has another version of the interface or none, cannot
// make the environment, or its spec is refused.
absl::StatusOr<std::vector<std::unique_ptr<Env>>> MakePluginEnvs(const std::string& id, const std::string& path,
                                                                 int count, const std::string& arguments);
// `count` of them as a World of this process, which has no time limit and no failures to tell but those in its columns.
// Takes WorldRequest::kBare. Errors as MakePluginEnvs.
absl::StatusOr<std::unique_ptr<World>> OpenPluginWorld(const std::string& id, const std::string& path, size_t count,
                                                       const std::string& arguments);
// Its spec alone. Errors as MakePluginEnvs.
absl::StatusOr<EnvSpec> FindPluginSpec(const std::string& id, const std::string& path, const std::string& arguments);

}  // namespace skein
