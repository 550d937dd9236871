// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "env/vector_env.h"
#include "skein/v1/config.pb.h"

namespace skein {

// Options of the environments that one runner of this run steps in a phase (base/config/phases.h). Pure. REQUIRES:
// `config` has its defaults applied and is validated.
VectorEnv::Options RunnerEnvOptions(const v1::RunConfig& config, uint32_t phase = 0);

// New environments, with the faults that SKEIN_FAULTS sets. Errors as VectorEnv::Make. Internal: an environment threw
// while it was built.
absl::StatusOr<std::unique_ptr<VectorEnv>> MakeRunnerEnv(const v1::RunConfig& config, uint32_t phase = 0);

}  // namespace skein
